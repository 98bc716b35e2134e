package spec

import "testing"

func TestSeparated(t *testing.T) {
	for _, tt := range []struct{ before, next, want string }{
		{"", "a", "a"},
		{"a", "", ""},
		{"a.", "B.", " B."},
		{"你好。", "再见。", "再见。"},
		{"你好", "Bob", " Bob"},
		{"Bob", "你好", " 你好"},
		{"カタカナ", "ひらがな", "ひらがな"},
		{"안녕", "하세요", " 하세요"},
		{"สวัสดี", "ครับ", " ครับ"},
		{"你好！", "（笑）", "（笑）"},
	} {
		if got := Separated(tt.before, tt.next); got != tt.want {
			t.Errorf("Separated(%q, %q) = %q, want %q", tt.before, tt.next, got, tt.want)
		}
	}
}

func TestUnspaced(t *testing.T) {
	for _, r := range "汉あアไລខမབ" {
		if !Unspaced(r) {
			t.Errorf("Unspaced(%q) = false", r)
		}
	}
	for _, r := range "aй한1。 " {
		if Unspaced(r) {
			t.Errorf("Unspaced(%q) = true", r)
		}
	}
}
