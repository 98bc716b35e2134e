package httpserver

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/otograph/otograph/internal/service/accounts"
	"github.com/otograph/otograph/internal/service/corrections"
	"github.com/otograph/otograph/internal/service/jsonstream"
	"github.com/otograph/otograph/internal/service/tasks"
)

// correctionRecord is a client's view of a correction.
type correctionRecord struct {
	Version int64  `json:"version"`
	Author  string `json:"author"`
	MadeAt  string `json:"made_at"`
	corrections.Change
}

func correctionRecordOf(e corrections.Entry) correctionRecord {
	return correctionRecord{e.Version, e.Author, stamp(e.MadeAt), e.Change}
}

// getCorrections handles GET /tasks/:id/corrections, an addition to the
// specification.
func (s *Server) getCorrections(w http.ResponseWriter, r *request, id string) error {
	log, err := s.cfg.Tasks.Corrections(r.Context(), r.who.Account, id)
	if err != nil {
		return err
	}
	out := struct {
		Version     int64              `json:"version"`
		Corrections []correctionRecord `json:"corrections"`
	}{corrections.Version(log), records(log, correctionRecordOf)}
	setVersion(w, out.Version)
	if namesVersion(r.Header.Get("If-None-Match"), out.Version) {
		w.WriteHeader(http.StatusNotModified)
		return nil
	}
	return writeJSON(w, http.StatusOK, out)
}

// createCorrection handles POST /tasks/:id/corrections, an addition to the
// specification.
func (s *Server) createCorrection(w http.ResponseWriter, r *request, id string) error {
	var c corrections.Change
	var version *int64
	err := readBody(w, r, tasks.MaxCorrection, jsonstream.Fields{
		"op":       text((*string)(&c.Op), maxVoiceField),
		"version":  decoded(&version, "version: must be a whole number"),
		"segment":  decoded(&c.Segment, "segment: must be a whole number"),
		"at":       decoded(&c.At, "at: must be a whole number"),
		"speaker":  text(&c.Speaker, maxVoiceField),
		"speakers": decoded(&c.Speakers, "speakers: must be an object of strings; null removes an entry"),
		"texts":    decoded(&c.Texts, "texts: must be an object of strings; null removes an entry"),
	})
	if err != nil {
		return err
	}
	if version == nil {
		return invalid("version: is required: the version that the correction is based on, see GET /tasks/:id/corrections")
	}
	if match := r.Header.Get("If-Match"); match != "" && !namesVersion(match, *version) {
		return &apiError{Status: http.StatusPreconditionFailed, Code: codeConflict, Message: "If-Match: must be version in quotes, " + versionTag(*version)}
	}
	author, err := s.author(r.Context(), r.who)
	if err != nil {
		return err
	}
	entry, err := s.cfg.Tasks.Correct(r.Context(), r.who.Account, id, author, c, *version)
	if current, ok := errors.AsType[*tasks.VersionError](err); ok {
		setVersion(w, current.Current)
		return &apiError{
			Status: http.StatusConflict, Code: codeConflict, cause: err,
			Message: fmt.Sprintf("version: the corrections have changed: version %d is current, not %d; fetch them again", current.Current, *version),
		}
	}
	if err != nil {
		return err
	}
	setVersion(w, entry.Version)
	return writeJSON(w, http.StatusCreated, correctionRecordOf(entry))
}

// author returns a user's name, or the first characters of an API key.
func (s *Server) author(ctx context.Context, who principal) (string, error) {
	if who.User == "" {
		return who.Key + "…", nil
	}
	users, err := s.cfg.Accounts.Users(ctx, who.Account)
	if i := slices.IndexFunc(users, func(u accounts.User) bool { return u.ID == who.User }); i >= 0 {
		return users[i].Username, nil
	}
	return "", err
}

// setVersion sets the ETag of the corrections.
func setVersion(w http.ResponseWriter, version int64) { w.Header().Set("ETag", versionTag(version)) }

// namesVersion reports whether the value of If-Match or If-None-Match names a version.
// A tag is weak behind a proxy that compresses.
func namesVersion(tags string, version int64) bool {
	return slices.ContainsFunc(strings.Split(tags, ","), func(tag string) bool {
		tag = strings.TrimPrefix(strings.TrimSpace(tag), "W/")
		return tag == "*" || tag == versionTag(version)
	})
}

func versionTag(version int64) string { return strconv.Quote(strconv.FormatInt(version, 10)) }
