package client

import (
	"encoding/base64"
	"errors"
	"io"
)

// upload is a request body that encodes its source while it is sent.
type upload struct {
	*io.PipeReader
	done chan struct{} // closed when the source is no longer read
}

// newUpload returns a body with the given head, the Base64 of audio, and the
// tail.
func newUpload(head []byte, audio io.Reader, tail string) *upload {
	r, w := io.Pipe()
	u := &upload{r, make(chan struct{})}
	go func() {
		defer close(u.done)
		_, err := w.Write(head)
		text := base64.NewEncoder(base64.StdEncoding, w)
		if err == nil {
			_, err = io.Copy(text, audio)
		}
		if err = errors.Join(err, text.Close()); err == nil {
			_, err = io.WriteString(w, tail)
		}
		w.CloseWithError(err)
	}()
	return u
}

// Close implements io.Closer. It waits until the source is no longer read.
func (u *upload) Close() error {
	err := u.PipeReader.Close()
	<-u.done
	return err
}
