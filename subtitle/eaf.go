package subtitle

import (
	"encoding/xml"
	"fmt"
	"io"
	"slices"
	"time"
)

// The elements of an ELAN annotation document (EAF 3.0, schema
// http://www.mpi.nl/tools/elan/EAFv3.0.xsd).
type eafDocument struct {
	XMLName xml.Name  `xml:"ANNOTATION_DOCUMENT"`
	XSI     string    `xml:"xmlns:xsi,attr"`
	Schema  string    `xml:"xsi:noNamespaceSchemaLocation,attr"`
	Author  string    `xml:"AUTHOR,attr"`
	Date    string    `xml:"DATE,attr"`
	Format  string    `xml:"FORMAT,attr"`
	Version string    `xml:"VERSION,attr"`
	Header  eafHeader `xml:"HEADER"`
	Slots   []eafSlot `xml:"TIME_ORDER>TIME_SLOT"`
	Tiers   []eafTier `xml:"TIER"`
	Types   []eafType `xml:"LINGUISTIC_TYPE"`
	Rules   []eafRule `xml:"CONSTRAINT"`
}

type eafHeader struct {
	MediaFile string   `xml:"MEDIA_FILE,attr"`
	Units     string   `xml:"TIME_UNITS,attr"`
	Media     eafMedia `xml:"MEDIA_DESCRIPTOR"`
}

type eafMedia struct {
	URL      string `xml:"MEDIA_URL,attr"`
	MIME     string `xml:"MIME_TYPE,attr"`
	Relative string `xml:"RELATIVE_MEDIA_URL,attr"`
}

type eafSlot struct {
	ID   string `xml:"TIME_SLOT_ID,attr"`
	Time int64  `xml:"TIME_VALUE,attr"`
}

type eafTier struct {
	Type        string          `xml:"LINGUISTIC_TYPE_REF,attr"`
	ID          string          `xml:"TIER_ID,attr"`
	Parent      string          `xml:"PARENT_REF,attr,omitempty"`
	Annotations []eafAnnotation `xml:"ANNOTATION"`
}

type eafAnnotation struct {
	Aligned struct {
		ID    string `xml:"ANNOTATION_ID,attr"`
		Start string `xml:"TIME_SLOT_REF1,attr"`
		End   string `xml:"TIME_SLOT_REF2,attr"`
		Value string `xml:"ANNOTATION_VALUE"`
	} `xml:"ALIGNABLE_ANNOTATION"`
}

type eafType struct {
	ID          string `xml:"LINGUISTIC_TYPE_ID,attr"`
	Alignable   bool   `xml:"TIME_ALIGNABLE,attr"`
	References  bool   `xml:"GRAPHIC_REFERENCES,attr"`
	Constraints string `xml:"CONSTRAINTS,attr,omitempty"`
}

type eafRule struct {
	Name        string `xml:"STEREOTYPE,attr"`
	Description string `xml:"DESCRIPTION,attr"`
}

// Linguistic types of the tiers.
const (
	eafUtterance = "utterance"
	eafWord      = "word"
)

// writeEAF writes an annotation document of ELAN (format 3.0): a tier per
// speaker, below it a tier with the speaker's words if word times are known,
// and the sounds. media is the recording's file name, which ELAN expects next
// to the document; date is the time of writing.
func writeEAF(w io.Writer, media string, date time.Time, cues []Cue) error {
	doc := eafDocument{
		XSI: "http://www.w3.org/2001/XMLSchema-instance", Schema: "http://www.mpi.nl/tools/elan/EAFv3.0.xsd",
		Author: "Otograph", Date: date.Format(time.RFC3339), Format: "3.0", Version: "3.0",
		Header: eafHeader{Units: "milliseconds", Media: eafMedia{URL: cleanText(media), MIME: "unknown", Relative: "./" + cleanText(media)}},
		Types: []eafType{
			{ID: eafUtterance, Alignable: true},
			{ID: eafWord, Alignable: true, Constraints: "Included_In"},
		},
		Rules: []eafRule{{"Included_In", "Time alignable annotations within the parent annotation's time interval, gaps are allowed"}},
	}
	rows := tiers(cues)
	slot := map[int64]string{}
	doc.Slots = eafSlots(rows)
	for _, s := range doc.Slots {
		slot[s.Time] = s.ID
	}
	annotations := 0
	for _, t := range rows {
		row := eafTier{Type: eafUtterance, ID: t.name, Parent: t.parent}
		if t.parent != "" {
			row.Type = eafWord
		}
		for _, s := range t.spans {
			annotations++
			var a eafAnnotation
			a.Aligned.ID = fmt.Sprintf("a%d", annotations)
			a.Aligned.Start, a.Aligned.End = slot[s.start], slot[s.end]
			a.Aligned.Value = s.text
			row.Annotations = append(row.Annotations, a)
		}
		doc.Tiers = append(doc.Tiers, row)
	}
	if _, err := io.WriteString(w, xml.Header); err != nil {
		return err
	}
	encoder := xml.NewEncoder(w)
	encoder.Indent("", "  ")
	if err := encoder.Encode(doc); err != nil {
		return err
	}
	_, err := io.WriteString(w, "\n")
	return err
}

// eafSlots returns a slot for every start and end of an interval, in order of
// time, as ELAN expects them.
func eafSlots(rows []tier) []eafSlot {
	var times []int64
	for _, t := range rows {
		for _, s := range t.spans {
			times = append(times, s.start, s.end)
		}
	}
	slices.Sort(times)
	times = slices.Compact(times)
	slots := make([]eafSlot, len(times))
	for i, at := range times {
		slots[i] = eafSlot{fmt.Sprintf("ts%d", i+1), at}
	}
	return slots
}
