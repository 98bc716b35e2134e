package httpapi

import (
	"mime"
	"net/http"
	"path"
	"strings"
	"time"
)

// getAudio is GET /tasks/:id/audio, which the specification does not have. It
// answers ranges of bytes.
func (s *Server) getAudio(w http.ResponseWriter, r *request) error {
	id, err := r.task()
	if err != nil {
		return err
	}
	audio, err := s.cfg.Tasks.Audio(r.Context(), r.who.Account, id)
	if err != nil {
		return err
	}
	defer audio.Close()
	if _, err := audio.Read(nil); err != nil && audio.Size() > 0 { // it may have gone since
		return err
	}
	h := w.Header()
	h.Set("Content-Type", audioType(audio.Task.AudioFilename))
	h.Set("Content-Disposition", attachment(audio.Task.AudioFilename))
	h.Set("Cache-Control", "private, no-cache")
	if audio.Task.AudioMD5 != nil {
		h.Set("ETag", `"`+*audio.Task.AudioMD5+`"`)
	}
	http.ServeContent(w, r.Request, "", time.Time{}, audio)
	return nil
}

// audioType returns the media type of a file name if it is one of sound or film:
// a browser must take a stranger's file for nothing else.
func audioType(name string) string {
	kind, _, _ := strings.Cut(mime.TypeByExtension(strings.ToLower(path.Ext(name))), ";")
	if strings.HasPrefix(kind, "audio/") || strings.HasPrefix(kind, "video/") {
		return kind
	}
	return "application/octet-stream"
}

// attachment returns the Content-Disposition of a download.
func attachment(name string) string {
	if value := mime.FormatMediaType("attachment", map[string]string{"filename": name}); value != "" {
		return value
	}
	return "attachment"
}
