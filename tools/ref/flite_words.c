/* flite_words.c speaks a sentence with flite and prints the start and end of each
 * word, from the segments of flite's utterance. tools/wordset builds and runs it;
 * by hand:
 *
 *   cc -O2 -o flite_words flite_words.c -lflite_cmu_us_rms -lflite_cmu_us_slt \
 *      -lflite_cmu_us_awb -lflite_cmu_us_kal16 -lflite_usenglish -lflite_cmulex \
 *      -lflite -lm
 *   flite_words rms|slt|awb|kal16 STRETCH OUT.s16 < TEXT
 *
 * The sound is mono 16-bit without a header. Standard output gets the sample
 * rate, then "word START END NAME" (seconds) for every word.
 */
#include <flite/flite.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

cst_voice *register_cmu_us_rms(const char *);
cst_voice *register_cmu_us_slt(const char *);
cst_voice *register_cmu_us_awb(const char *);
cst_voice *register_cmu_us_kal16(const char *);

static cst_voice *voice(const char *name)
{
    if (!strcmp(name, "rms")) return register_cmu_us_rms(NULL);
    if (!strcmp(name, "slt")) return register_cmu_us_slt(NULL);
    if (!strcmp(name, "awb")) return register_cmu_us_awb(NULL);
    if (!strcmp(name, "kal16")) return register_cmu_us_kal16(NULL);
    return NULL;
}

int main(int argc, char **argv)
{
    static char text[1 << 16];
    if (argc != 4) return fprintf(stderr, "usage: flite_words rms|slt|awb|kal16 STRETCH OUT.s16 < TEXT\n"), 2;
    fread(text, 1, sizeof text - 1, stdin);
    flite_init();
    cst_voice *v = voice(argv[1]);
    if (!v) return fprintf(stderr, "flite_words: no voice %s\n", argv[1]), 2;
    feat_set_float(v->features, "duration_stretch", atof(argv[2]));
    cst_utterance *u = flite_synth_text(text, v);
    cst_wave *w = utt_wave(u);
    FILE *f = fopen(argv[3], "wb");
    if (!f) return perror(argv[3]), 1;
    fwrite(w->samples, 2, w->num_samples, f);
    printf("rate %d\n", w->sample_rate);
    for (cst_item *i = relation_head(utt_relation(u, "Word")); i; i = item_next(i))
        printf("word %f %f %s\n", ffeature_float(i, "R:SylStructure.daughter1.daughter1.R:Segment.p.end"),
               ffeature_float(i, "R:SylStructure.daughtern.daughtern.R:Segment.end"), item_feat_string(i, "name"));
    return fclose(f) != 0;
}
