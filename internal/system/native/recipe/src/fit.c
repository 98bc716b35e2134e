/* fit.c makes shared libraries that were built on a newer distribution load with
 * this machine's own C and C++ libraries. usage: fit COMPAT.so LIB.so...
 *
 * A shared library names the version of each symbol that it requires
 * (sqrtf@GLIBC_2.43). The loader refuses it if this machine's library lacks that
 * version, even if the function itself has been around for decades. Therefore all
 * required versions become weak, which the loader accepts, and a symbol whose
 * version is missing here is required without one:
 *
 *   - the same symbol exists here under an older version: it is used;
 *   - it is an __isoc23_ parser (strtol and so on; the C23 form only adds the
 *     "0b" prefix): the plain form is used;
 *   - it is one of the few functions in compat.c: libnative_compat.so provides it.
 *
 * Anything else is an error that lists the symbols, and the file is not changed.
 * Edits are made in place and are idempotent. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <link.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

static const char c23[] = "__isoc23_";

/* fit returns the number of symbols that nothing provides, or -1. */
static int fit(const char *path, void *compat)
{
    struct stat st;
    int fd = open(path, O_RDWR), missing = 0;
    char *raw = fd < 0 || fstat(fd, &st) ? MAP_FAILED : mmap(NULL, st.st_size, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0);
    if (raw == MAP_FAILED || memcmp(raw, ELFMAG, SELFMAG) || raw[EI_CLASS] != ELFCLASS64) return -1;
    ElfW(Ehdr) *file = (void *)raw;
    ElfW(Shdr) *section = (void *)(raw + file->e_shoff), *end = section + file->e_shnum, *all = section;
    ElfW(Sym) *symbols = NULL;
    ElfW(Half) *versions = NULL;
    ElfW(Verneed) *need = NULL;
    size_t count = 0;
    char *names = NULL;
    for (; section < end; section++) {
        void *data = raw + section->sh_offset;
        if (section->sh_type == SHT_DYNSYM)
            symbols = data, count = section->sh_size / sizeof *symbols, names = raw + all[section->sh_link].sh_offset;
        if (section->sh_type == SHT_GNU_versym) versions = data;
        if (section->sh_type == SHT_GNU_verneed) need = data;
    }
    if (!symbols || !versions || !need) return 0;
    printf("%s:", strrchr(path, '/') ? strrchr(path, '/') + 1 : path);
    for (;; need = (void *)((char *)need + need->vn_next)) {
        void *lib = dlopen(names + need->vn_file, RTLD_LAZY); /* NULL: not a library of this machine */
        ElfW(Vernaux) *version = (void *)((char *)need + need->vn_aux);
        for (;; version = (void *)((char *)version + version->vna_next)) {
            version->vna_flags |= VER_FLG_WEAK;
            for (size_t i = 1; lib && i < count; i++) {
                const char *name = names + symbols[i].st_name, *number = names + version->vna_name;
                if (versions[i] != version->vna_other) continue;
                /* the loader's own symbols are found through another library alone */
                if (dlvsym(lib, name, number) || dlvsym(compat, name, number)) continue;
                versions[i] = VER_NDX_GLOBAL;
                printf(" %s@%s", name, number);
                if (!strncmp(name, c23, sizeof c23 - 1) && !dlsym(lib, name)) symbols[i].st_name += sizeof c23 - 1;
                if (dlsym(lib, names + symbols[i].st_name) || dlsym(compat, name)) continue;
                fprintf(stderr, "fit: %s: nothing on this machine provides %s@%s\n", path, name, number);
                missing++;
            }
            if (!version->vna_next) break;
        }
        if (!need->vn_next) break;
    }
    puts("");
    return missing || pwrite(fd, raw, st.st_size, 0) == st.st_size ? missing : -1;
}

int main(int argc, char **argv)
{
    void *compat = argc > 1 ? dlopen(argv[1], RTLD_NOW) : NULL;
    int failed = !compat;
    if (!compat) fprintf(stderr, "fit: %s\n", dlerror());
    for (int i = 2; i < argc; i++) {
        int missing = fit(argv[i], compat);
        if (missing < 0) fprintf(stderr, "fit: %s: not a 64-bit shared library that can be written\n", argv[i]);
        failed |= missing != 0;
    }
    return failed;
}
