package subtitle

import (
	"bufio"
	"encoding/xml"
	"fmt"
	"html"
	"io"
	"slices"
	"time"
)

// The parts of an ELAN annotation document (EAF 3.0, schema
// http://www.mpi.nl/tools/elan/EAFv3.0.xsd).
const (
	eafHead = xml.Header + `<ANNOTATION_DOCUMENT xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance"` +
		` xsi:noNamespaceSchemaLocation="http://www.mpi.nl/tools/elan/EAFv3.0.xsd" AUTHOR="Otograph" DATE="%s" FORMAT="3.0" VERSION="3.0">
  <HEADER MEDIA_FILE="" TIME_UNITS="milliseconds">
    <MEDIA_DESCRIPTOR MEDIA_URL="%[2]s" MIME_TYPE="unknown" RELATIVE_MEDIA_URL="./%[2]s"></MEDIA_DESCRIPTOR>
  </HEADER>
`
	eafAnnotation = `    <ANNOTATION>
      <ALIGNABLE_ANNOTATION ANNOTATION_ID="a%d" TIME_SLOT_REF1="ts%d" TIME_SLOT_REF2="ts%d">
        <ANNOTATION_VALUE>%s</ANNOTATION_VALUE>
      </ALIGNABLE_ANNOTATION>
    </ANNOTATION>
`
	eafTail = `  <LINGUISTIC_TYPE LINGUISTIC_TYPE_ID="utterance" TIME_ALIGNABLE="true" GRAPHIC_REFERENCES="false"></LINGUISTIC_TYPE>
  <LINGUISTIC_TYPE LINGUISTIC_TYPE_ID="word" TIME_ALIGNABLE="true" GRAPHIC_REFERENCES="false" CONSTRAINTS="Included_In"></LINGUISTIC_TYPE>
  <CONSTRAINT STEREOTYPE="Included_In" DESCRIPTION="Time alignable annotations within the parent annotation&#39;s time interval, gaps are allowed"></CONSTRAINT>
</ANNOTATION_DOCUMENT>
`
)

// writeEAF writes an annotation document of ELAN (format 3.0): a tier per
// speaker, below it a tier with the speaker's words if word times are known,
// and the sounds. media is the recording's file name, which ELAN expects next
// to the document; date is the time of writing.
func writeEAF(w io.Writer, media string, date time.Time, cues []Cue) error {
	rows := tiers(cues)
	out := bufio.NewWriter(w)
	fmt.Fprintf(out, eafHead, date.Format(time.RFC3339), html.EscapeString(cleanText(media)))
	slot := eafSlots(out, rows)
	annotations := 0
	for _, t := range rows {
		kind, parent := "utterance", ""
		if t.parent != "" {
			kind, parent = "word", ` PARENT_REF="`+html.EscapeString(t.parent)+`"`
		}
		fmt.Fprintf(out, "  <TIER LINGUISTIC_TYPE_REF=%q TIER_ID=\"%s\"%s>\n", kind, html.EscapeString(t.name), parent)
		for _, s := range t.spans {
			annotations++
			fmt.Fprintf(out, eafAnnotation, annotations, slot[s.start], slot[s.end], html.EscapeString(s.text))
		}
		fmt.Fprintln(out, "  </TIER>")
	}
	fmt.Fprint(out, eafTail)
	return out.Flush()
}

// eafSlots writes a numbered slot for every start and end, in order of time, as
// ELAN expects them, and returns their numbers. The list may be empty.
func eafSlots(out io.Writer, rows []tier) map[int64]int {
	var times []int64
	for _, t := range rows {
		for _, s := range t.spans {
			times = append(times, s.start, s.end)
		}
	}
	slices.Sort(times)
	slot := map[int64]int{}
	fmt.Fprintln(out, "  <TIME_ORDER>")
	for i, at := range slices.Compact(times) {
		slot[at] = i + 1
		fmt.Fprintf(out, "    <TIME_SLOT TIME_SLOT_ID=\"ts%d\" TIME_VALUE=\"%d\"></TIME_SLOT>\n", i+1, at)
	}
	fmt.Fprintln(out, "  </TIME_ORDER>")
	return slot
}
