/* Loaded into the server by LD_PRELOAD: makes system calls on files below one folder fail, as a test says while the server
 * runs. It never changes what a call that succeeds does. The test writes the control file that FAULTS_CONTROL names
 * (`faults.py` has the same fields); FAULTS_FOLDER is the folder. */

#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

enum { SYNC = 1, WRITE = 2, SHORT_WRITE = 4, OPEN = 8, READ = 16 };

struct control {
    _Atomic int32_t kinds;   /* which calls fail, of the enum above */
    int32_t error;           /* the errno that they fail with */
    _Atomic int32_t skip;    /* calls that pass before the first failure */
    _Atomic int32_t times;   /* failures; negative: for ever */
    _Atomic int32_t hits;    /* failures so far */
    _Atomic int32_t tracing; /* whether synced paths are written to FAULTS_TRACE */
    char part[232];          /* only paths that have this in them */
};

static struct control *control;
static char folder[PATH_MAX];
static size_t folder_length;
static int trace = -1;

__attribute__((constructor)) static void start(void) {
    const char *name = getenv("FAULTS_CONTROL"), *below = getenv("FAULTS_FOLDER"), *traced = getenv("FAULTS_TRACE");
    int (*real_open)(const char *, int, ...) = dlsym(RTLD_NEXT, "open");
    if (!name || !below || !realpath(below, folder)) return;
    folder_length = strlen(folder);
    int fd = real_open(name, O_RDWR | O_CLOEXEC);
    if (fd < 0) abort();
    void *mapped = mmap(NULL, sizeof(struct control), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (mapped == MAP_FAILED) abort();
    close(fd);
    if (traced) trace = real_open(traced, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    control = mapped;
}

static int is_ours(const char *path) {
    return strncmp(path, folder, folder_length) == 0 && (path[folder_length] == '/' || path[folder_length] == 0);
}

/* Whether this call is one that fails. Sets errno. */
static int fails(const char *path) {
    if (!is_ours(path) || !strstr(path, control->part)) return 0;
    if (atomic_load(&control->skip) > 0 && atomic_fetch_sub(&control->skip, 1) > 0) return 0;
    int32_t left = atomic_load(&control->times);
    if (left == 0) return 0;
    if (left > 0) atomic_fetch_sub(&control->times, 1);
    atomic_fetch_add(&control->hits, 1);
    errno = control->error;
    return 1;
}

static int path_of(int fd, char *path) {
    char link[64];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t length = readlink(link, path, PATH_MAX - 1);
    if (length < 0) return 0;
    path[length] = 0;
    return 1;
}

static int wanted(int kind) { return control && (atomic_load(&control->kinds) & kind); }

static int fd_fails(int kind, int fd) {
    char path[PATH_MAX];
    if (!wanted(kind)) return 0;
    int before = errno;
    int found = path_of(fd, path);
    errno = before;
    return found && fails(path);
}

/* A path as the caller wrote it, below a folder that the caller has open. */
static int path_fails(int kind, int at, const char *name) {
    char path[2 * PATH_MAX + 2], base[PATH_MAX];
    if (!wanted(kind)) return 0;
    if (name[0] == '/') return fails(name);
    if (at == AT_FDCWD ? !getcwd(base, sizeof base) : !path_of(at, base)) return 0;
    snprintf(path, sizeof path, "%s/%s", base, name);
    return fails(path);
}

static void note(const char *what, int fd) {
    char path[PATH_MAX], line[PATH_MAX + 32];
    if (!control || trace < 0 || !atomic_load(&control->tracing) || !path_of(fd, path) || !is_ours(path)) return;
    int length = snprintf(line, sizeof line, "%s %s\n", what, path + folder_length);
    ssize_t (*real_write)(int, const void *, size_t) = dlsym(RTLD_NEXT, "write");
    (void)!real_write(trace, line, length);
}

#define REAL(type, name, ...) \
    static type (*real)(__VA_ARGS__); \
    if (!real) real = dlsym(RTLD_NEXT, name)

#define SYNCS(name) \
    int name(int fd) { \
        REAL(int, #name, int); \
        if (fd_fails(SYNC, fd)) return -1; \
        int result = real(fd); \
        if (result == 0) note("sync", fd); \
        return result; \
    }
SYNCS(fsync)
SYNCS(fdatasync)

/* How much of a write is done: all, nothing (-1), or its first half, after which a full disk has no more room. */
static ssize_t room(int fd, size_t length) {
    if (fd_fails(WRITE, fd)) return -1;
    if (length < 2 || !fd_fails(SHORT_WRITE, fd)) return (ssize_t)length;
    atomic_store(&control->kinds, WRITE);
    return (ssize_t)(length / 2);
}

ssize_t write(int fd, const void *bytes, size_t length) {
    REAL(ssize_t, "write", int, const void *, size_t);
    ssize_t some = room(fd, length);
    return some < 0 ? -1 : real(fd, bytes, (size_t)some);
}

#define PWRITES(name, offset_type) \
    ssize_t name(int fd, const void *bytes, size_t length, offset_type offset) { \
        REAL(ssize_t, #name, int, const void *, size_t, offset_type); \
        ssize_t some = room(fd, length); \
        return some < 0 ? -1 : real(fd, bytes, (size_t)some, offset); \
    }
PWRITES(pwrite, off_t)
PWRITES(pwrite64, off64_t)

ssize_t writev(int fd, const struct iovec *parts, int count) {
    REAL(ssize_t, "writev", int, const struct iovec *, int);
    if (fd_fails(WRITE | SHORT_WRITE, fd)) return -1;
    return real(fd, parts, count);
}

#define TRUNCATES(name, offset_type) \
    int name(int fd, offset_type length) { \
        REAL(int, #name, int, offset_type); \
        struct stat now; \
        /* Making a file smaller needs no room. */ \
        if (wanted(WRITE) && fstat(fd, &now) == 0 && length > now.st_size && fd_fails(WRITE, fd)) return -1; \
        return real(fd, length); \
    }
TRUNCATES(ftruncate, off_t)
TRUNCATES(ftruncate64, off64_t)

#define READS(name, offset_type) \
    ssize_t name(int fd, void *bytes, size_t length, offset_type offset) { \
        REAL(ssize_t, #name, int, void *, size_t, offset_type); \
        return fd_fails(READ, fd) ? -1 : real(fd, bytes, length, offset); \
    }
READS(pread, off_t)
READS(pread64, off64_t)

ssize_t read(int fd, void *bytes, size_t length) {
    REAL(ssize_t, "read", int, void *, size_t);
    return fd_fails(READ, fd) ? -1 : real(fd, bytes, length);
}

static int writes(int flags) { return (flags & O_ACCMODE) != O_RDONLY || (flags & (O_CREAT | O_TRUNC)); }

#define OPENS(name) \
    int name(const char *path, int flags, ...) { \
        REAL(int, #name, const char *, int, ...); \
        va_list rest; \
        va_start(rest, flags); \
        mode_t mode = (flags & (O_CREAT | __O_TMPFILE)) ? va_arg(rest, mode_t) : 0; \
        va_end(rest); \
        if (path_fails(writes(flags) ? OPEN : READ, AT_FDCWD, path)) return -1; \
        return real(path, flags, mode); \
    }
OPENS(open)
OPENS(open64)

#define OPENATS(name) \
    int name(int at, const char *path, int flags, ...) { \
        REAL(int, #name, int, const char *, int, ...); \
        va_list rest; \
        va_start(rest, flags); \
        mode_t mode = (flags & (O_CREAT | __O_TMPFILE)) ? va_arg(rest, mode_t) : 0; \
        va_end(rest); \
        if (path_fails(writes(flags) ? OPEN : READ, at, path)) return -1; \
        return real(at, path, flags, mode); \
    }
OPENATS(openat)
OPENATS(openat64)

/* What else a file system that takes no writes refuses. */
int mkdir(const char *path, mode_t mode) {
    REAL(int, "mkdir", const char *, mode_t);
    return path_fails(OPEN, AT_FDCWD, path) ? -1 : real(path, mode);
}

int unlink(const char *path) {
    REAL(int, "unlink", const char *);
    return path_fails(OPEN, AT_FDCWD, path) ? -1 : real(path);
}

int unlinkat(int at, const char *path, int flags) {
    REAL(int, "unlinkat", int, const char *, int);
    return path_fails(OPEN, at, path) ? -1 : real(at, path, flags);
}

int rename(const char *from, const char *to) {
    REAL(int, "rename", const char *, const char *);
    return path_fails(OPEN, AT_FDCWD, to) ? -1 : real(from, to);
}

int link(const char *from, const char *to) {
    REAL(int, "link", const char *, const char *);
    return path_fails(OPEN, AT_FDCWD, to) ? -1 : real(from, to);
}

int linkat(int from_at, const char *from, int to_at, const char *to, int flags) {
    REAL(int, "linkat", int, const char *, int, const char *, int);
    return path_fails(OPEN, to_at, to) ? -1 : real(from_at, from, to_at, to, flags);
}
