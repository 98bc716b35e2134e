/* espeak_words.c speaks a sentence with espeak-ng and prints the sample at which
 * the synthesizer reports the start of each word. tools/wordset builds and
 * runs it; by hand:
 *
 *   cc -O2 -o espeak_words espeak_words.c -lespeak-ng
 *   espeak_words VOICE RATE PITCH RANGE OUT.s16 < TEXT
 *
 * The sound is mono 16-bit without a header. Standard output gets the sample
 * rate, then "word SAMPLE POSITION LENGTH" for every word (position and length
 * in characters of the text, from 0; a word that espeak-ng joins with the word
 * before has no line) and "end SAMPLE" for every clause.
 */
#include <espeak-ng/speak_lib.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static FILE *sound;

static int take(short *wav, int n, espeak_EVENT *events)
{
    if (wav && n > 0) fwrite(wav, 2, n, sound);
    for (espeak_EVENT *e = events; e->type != espeakEVENT_LIST_TERMINATED; e++) {
        if (e->type == espeakEVENT_WORD && e->length > 0) printf("word %d %d %d\n", e->sample, e->text_position - 1, e->length);
        if (e->type == espeakEVENT_END) printf("end %d\n", e->sample);
    }
    return 0;
}

int main(int argc, char **argv)
{
    static char text[1 << 16];
    if (argc != 6) return fprintf(stderr, "usage: espeak_words VOICE RATE PITCH RANGE OUT.s16 < TEXT\n"), 2;
    size_t n = fread(text, 1, sizeof text - 1, stdin);
    int rate = espeak_Initialize(AUDIO_OUTPUT_SYNCHRONOUS, 0, NULL, 0);
    if (rate <= 0) return fprintf(stderr, "espeak-ng does not start\n"), 1;
    if (espeak_SetVoiceByName(argv[1]) != EE_OK) return fprintf(stderr, "no voice %s\n", argv[1]), 1;
    espeak_SetParameter(espeakRATE, atoi(argv[2]), 0);
    espeak_SetParameter(espeakPITCH, atoi(argv[3]), 0);
    espeak_SetParameter(espeakRANGE, atoi(argv[4]), 0);
    espeak_SetSynthCallback(take);
    if (!(sound = fopen(argv[5], "wb"))) return perror(argv[5]), 1;
    printf("rate %d\n", rate);
    if (espeak_Synth(text, n + 1, 0, POS_CHARACTER, 0, espeakCHARS_UTF8, NULL, NULL) != EE_OK)
        return fprintf(stderr, "espeak-ng refuses the text\n"), 1;
    espeak_Synchronize();
    return fclose(sound) != 0;
}
