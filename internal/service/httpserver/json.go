package httpserver

import (
	"errors"
	"io"
	"net/http"
	"os"

	"github.com/otograph/otograph/internal/service/jsonstream"
	"github.com/otograph/otograph/spec"
)

// readBody reads the request's body, a JSON object with the given fields, of at
// most max bytes.
func readBody(w http.ResponseWriter, r *request, max int, fields jsonstream.Fields) error {
	body, err := jsonBody(w, r, int64(max))
	if err != nil {
		return err
	}
	return readJSON(body, max, fields)
}

// readJSON reads a body that is a JSON object with the given fields; max limits
// the value of one field, in bytes.
func readJSON(body io.Reader, max int, fields jsonstream.Fields) error {
	err := jsonstream.ReadObject(body, max, fields)
	var read *jsonstream.ReadError
	var wrong *jsonstream.Error
	switch {
	case err == nil:
		return nil
	case errors.As(err, &read):
		return readError(err, read.Error())
	case errors.As(err, &wrong):
		return invalidBecause(err, "%s", wrong)
	default:
		return err
	}
}

// readError explains why a body could not be read to its end: it exceeded the
// limit, arrived too slowly, or was malformed as message says.
func readError(err error, message string) *apiError {
	var big *http.MaxBytesError
	switch {
	case errors.As(err, &big):
		return tooLarge(big.Limit)
	case errors.Is(err, os.ErrDeadlineExceeded):
		return &apiError{Status: http.StatusRequestTimeout, Code: codeInvalidRequest, Message: "the request body arrived too slowly"}
	default: // io.EOF, a broken connection, wrong chunked encoding
		return invalidBecause(err, "%s", message)
	}
}

// readOptions reads an Options object.
func readOptions(v *jsonstream.Value, dst *spec.Options) error {
	raw, err := v.Raw()
	if err != nil {
		return err
	}
	if raw[0] != '{' {
		return invalid("options: must be an object, not %s", spec.Shorten(string(raw)))
	}
	var o spec.Options
	if err := o.UnmarshalJSON(raw); err != nil {
		return optionsError(err)
	}
	*dst = o
	return nil
}

func optionsError(err error) *apiError {
	var wrong *spec.OptionError
	prefix := ""
	if errors.As(err, &wrong) && wrong.Field != "" {
		prefix = "options."
	}
	return invalidBecause(err, "%s%s", prefix, err)
}
