/* libgfortran.so.5, for machines without one: the two functions that OpenBLAS
 * asks for. Its Fortran part, LAPACK, calls them; what we use of it does not. */
#include <stddef.h>
#include <string.h>

/* dest is s1 and s2, cut or filled with blanks */
void _gfortran_concat_string(size_t len, char *dest, size_t len1, const char *s1, size_t len2, const char *s2)
{
    size_t first = len1 < len ? len1 : len, second = len2 < len - first ? len2 : len - first;
    memmove(dest, s1, first);
    memmove(dest + first, s2, second);
    memset(dest + first + second, ' ', len - first - second);
}

/* processor time; -1 says that it is not known */
float _gfortran_etime(void *parts)
{
    (void)parts;
    return -1;
}
