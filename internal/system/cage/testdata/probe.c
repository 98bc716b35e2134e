// Makes the system calls that its arguments name, "NR,A0,A1,…" with "P" for the
// parent's process id and "S" for the path of a file beside this program, and
// prints "NR RESULT ERRNO" for each. It forks nothing to find out.
#define _GNU_SOURCE
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

int main(int argc, char **argv) {
	static char line[64], path[4096];
	char *slash = strrchr(strcpy(path, argv[0]), '/');
	strcpy(slash + 1, "secret");
	for (int i = 1; i < argc; i++) {
		long v[7] = {0};
		char *rest = argv[i];
		for (int n = 0; n < 7 && rest; n++) {
			char *field = strsep(&rest, ",");
			v[n] = *field == 'P' ? getppid() : *field == 'S' ? (long)path : strtol(field, 0, 0);
		}
		errno = 0;
		long result = syscall(v[0], v[1], v[2], v[3], v[4], v[5], v[6]);
		int n = snprintf(line, sizeof line, "%ld %ld %d\n", v[0], result, errno);
		if (write(1, line, n) != n) return 1;
	}
	return 0;
}
