package httpserver

import (
	"mime"
	"net/http"
	"path"
	"strings"
	"time"
)

// getAudio handles GET /tasks/:id/audio, an addition to the specification. It
// supports byte ranges.
func (s *Server) getAudio(w http.ResponseWriter, r *request, id string) error {
	audio, err := s.cfg.Tasks.Audio(r.Context(), r.who.Account, id)
	if err != nil {
		return err
	}
	defer audio.Close()
	if _, err := audio.Read(nil); err != nil && audio.Size() > 0 { // it may have been deleted in the meantime
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

// audioType returns the media type of a file name if it is audio or video: a
// browser must not interpret an uploaded file as anything else.
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
