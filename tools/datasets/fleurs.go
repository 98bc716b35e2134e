package main

import (
	"fmt"
	"path/filepath"
	"strings"

	"github.com/otograph/otograph/internal/files/textfile"
	"github.com/otograph/otograph/internal/system/fetch"
)

// fleursCodes are FLEURS' names of its 102 languages.
const fleursCodes = "af_za am_et ar_eg as_in ast_es az_az be_by bg_bg bn_in bs_ba ca_es ceb_ph ckb_iq cmn_hans_cn cs_cz cy_gb da_dk de_de " +
	"el_gr en_us es_419 et_ee fa_ir ff_sn fi_fi fil_ph fr_fr ga_ie gl_es gu_in ha_ng he_il hi_in hr_hr hu_hu hy_am id_id ig_ng is_is it_it " +
	"ja_jp jv_id ka_ge kam_ke kea_cv kk_kz km_kh kn_in ko_kr ky_kg lb_lu lg_ug ln_cd lo_la lt_lt luo_ke lv_lv mi_nz mk_mk ml_in mn_mn mr_in " +
	"ms_my mt_mt my_mm nb_no ne_np nl_nl nso_za ny_mw oc_fr om_et or_in pa_in pl_pl ps_af pt_br ro_ro ru_ru sd_in sk_sk sl_si sn_zw so_so " +
	"sr_rs sv_se sw_ke ta_in te_in tg_tj th_th tr_tr uk_ua umb_ao ur_pk uz_uz vi_vn wo_sn xh_za yo_ng yue_hant_hk zu_za"

// findFLEURS returns FLEURS for a language's name ("de_de") or code ("de").
func findFLEURS(name string) (Set, error) {
	codes := strings.Fields(fleursCodes)
	for _, code := range codes {
		if tag, _, _ := strings.Cut(code, "_"); code == name || tag == name {
			return fleurs(code), nil
		}
	}
	for _, code := range codes {
		if l := language(code); l != "" && l == language(name) {
			return fleurs(code), nil
		}
	}
	return Set{}, fmt.Errorf("%w: fleurs:%s: expected a language of %s", ErrUnknown, name, strings.Join(codes, ", "))
}

// fleurs returns the test part of FLEURS in a language. Its hashes are in the
// repository's pointers of Git LFS.
func fleurs(code string) Set {
	const base = "https://huggingface.co/datasets/google/fleurs/"
	audio := "main/data/" + code + "/audio/test.tar.gz"
	return Set{
		Name: "fleurs:" + code, About: "sentences of Wikipedia, read, in 102 languages; the test part", License: "CC-BY-4.0",
		Page: "https://huggingface.co/datasets/google/fleurs", Language: language(code),
		files: []source{
			{
				File: fetch.File{Name: "test.tar.gz", URL: base + "resolve/" + audio}, pointer: base + "raw/" + audio,
				place: matching(`([^/]+\.wav)$`, audioDir+"/$1"),
			},
			{
				File: fetch.File{Name: "test.tsv", URL: base + "resolve/main/data/" + code + "/test.tsv"},
				to:   referencesDir + "/test.tsv",
			},
		},
		lines: fleursLines,
	}
}

// fleursLines reads a table without a header: the sentence's number, the file,
// the text as written, the text in lower case without punctuation, its letters,
// the number of samples, the speaker's gender.
func fleursLines(folder string) (lines []line, err error) {
	text, err := textfile.Read(filepath.Join(folder, referencesDir, "test.tsv"), maxReference)
	if err != nil {
		return nil, err
	}
	for row := range strings.Lines(text) {
		field := strings.Split(strings.TrimRight(row, "\r\n"), "\t")
		if len(field) < 7 {
			return nil, fmt.Errorf("%w: test.tsv: expected lines of 7 fields, found %q", ErrContent, row)
		}
		lines = append(lines, line{
			File: audioDir + "/" + filepath.Base(field[1]), Text: &field[2], Gender: strings.ToLower(strings.TrimSpace(field[6])),
		})
	}
	return lines, nil
}
