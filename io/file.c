/* SPDX-License-Identifier: Apache-2.0
 *
 * Reading files, and confining the names that files hold to a folder. Names are walked
 * component by component with O_NOFOLLOW: it holds on every kernel, and it can say which
 * component is to blame.
 */
#ifdef HAVE_CONFIG_H
#include <config.h>
#endif
#include "io/file.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/alloc.h"
#include "core/checked.h"
#include "core/team.h"
#include "io/printable.h"

#define OPEN_FLAGS (O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC)
#define REMEDY "put the file itself in that folder"

static const struct {
    mode_t type;
    const char *name;
} kinds[] = {
    {S_IFDIR, "a folder"},       {S_IFIFO, "a FIFO"},          {S_IFCHR, "a device"},
    {S_IFBLK, "a block device"}, {S_IFLNK, "a symbolic link"}, {S_IFSOCK, "a socket"},
    {S_IFREG, "a regular file"},
};

static const char *kind_name(mode_t mode)
{
    for (size_t i = 0; i < ARRAY_LENGTH(kinds); i++)
        if ((mode & S_IFMT) == kinds[i].type)
            return kinds[i].name;
    return "of an unknown kind";
}

static int refuse_kind(const char *path, mode_t mode, strata_error *err)
{
    return error_set(err, STRATA_EINVAL, "%s: is %s; a regular file is needed", path,
                     kind_name(mode));
}

static int open_failed(const char *path, const char *what, strata_error *err)
{
    return error_errno(err, errno == ENOENT ? STRATA_ENOTFOUND : STRATA_EIO, "%s: %s",
                       path, what);
}

/* Bytes read, fewer than size only at the end of the file; -1 with errno. */
static ssize_t read_all(int fd, char *data, size_t size)
{
    size_t done = 0;
    while (done < size) {
        ssize_t n = read(fd, data + done, size - done);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return -1;
        if (n == 0)
            break;
        done += (size_t)n;
    }
    return (ssize_t)done;
}

enum { LARGE = 8 << 20 }; /* bytes of a file that is read in pieces */

/* Aligned as tensors are, so that they can be used where they are; large ones by pages
 * that the system makes quickly. free() it. */
static char *allocate(size_t size)
{
    enum { TENSOR = 256, HUGE_PAGE = 2 << 20 };
    void *data = NULL;
    if (posix_memalign(&data, size < LARGE ? TENSOR : HUGE_PAGE, size) != 0)
        return NULL;
    if (size >= LARGE)
        madvise(data, size, MADV_HUGEPAGE); /* a wish */
    return data;
}

/* Pieces of a large file by several threads, since making its pages takes as long as
 * copying it; as read_all. */
static ssize_t read_large(int fd, char *data, size_t size)
{
    enum { PIECE = 4 << 20 };
    const size_t n = size / PIECE + (size % PIECE != 0);
    int failure = 0;
    bool whole = true;
#pragma omp parallel for if (n > 1) schedule(dynamic)
    for (size_t i = 0; i < n; i++) {
        size_t at = i * PIECE, end = size - at < PIECE ? size : at + PIECE;
        while (at < end) {
            ssize_t got = pread(fd, data + at, end - at, (off_t)at);
            if (got < 0 && errno == EINTR)
                continue;
            if (got > 0) {
                at += (size_t)got;
                continue;
            }
#pragma omp critical(strata_read_large)
            {
                whole = false;
                failure = got < 0 ? errno : failure;
            }
            break;
        }
    }
    team_end();
    char more;
    if (failure) {
        errno = failure;
        return -1;
    }
    if (!whole)
        return 0;
    ssize_t extra = pread(fd, &more, 1, (off_t)size);
    return extra < 0 ? -1 : (ssize_t)size + extra;
}

/* Size of an open file that is regular and within the limit. */
static int open_size(uint64_t *out, int fd, const char *path, uint64_t limit,
                     strata_error *err)
{
    struct stat st;
    if (fstat(fd, &st) != 0)
        return open_failed(path, "cannot be examined", err);
    if (!S_ISREG(st.st_mode))
        return refuse_kind(path, st.st_mode, err);
    *out = (uint64_t)st.st_size;
    if (*out > limit || *out > SSIZE_MAX - 1)
        return error_set(err, STRATA_EPARSE,
                         "%s: file has %" PRIu64 " bytes, at most %" PRIu64
                         " are allowed",
                         path, *out, limit);
    return STRATA_OK;
}

static int read_open(struct file_bytes *out, int fd, const char *path, uint64_t limit,
                     strata_error *err)
{
    uint64_t size;
    int status = open_size(&size, fd, path, limit, err);
    if (status != STRATA_OK)
        return status;
    char *data = allocate((size_t)size + 1);
    if (!data)
        return error_no_memory(err, (size_t)size + 1, path);
    /* One byte more is asked for, to notice a file that grows. */
    ssize_t n = size < LARGE ? read_all(fd, data, (size_t)size + 1)
                             : read_large(fd, data, (size_t)size);
    if (n != (ssize_t)size) {
        free(data);
        if (n < 0)
            return open_failed(path, "cannot be read", err);
        return error_set(err, STRATA_EIO,
                         "%s: size changed from %" PRIu64 " bytes while it was read; "
                         "try again when nothing writes to it",
                         path, size);
    }
    data[size] = '\0';
    *out = (struct file_bytes){data, (size_t)size};
    return STRATA_OK;
}

static int map_open(struct file_bytes *out, int fd, const char *path, uint64_t limit,
                    strata_error *err)
{
    uint64_t size;
    int status = open_size(&size, fd, path, limit, err);
    if (status != STRATA_OK || size == 0)
        return status;
    void *data = mmap(NULL, (size_t)size, PROT_READ, MAP_PRIVATE, fd, 0);
    if (data == MAP_FAILED)
        return open_failed(path, "cannot be mapped", err);
    *out = (struct file_bytes){data, (size_t)size};
    return STRATA_OK;
}

typedef int take_fn(struct file_bytes *out, int fd, const char *path, uint64_t limit,
                    strata_error *err);

static int take(struct file_bytes *out, const char *path, uint64_t limit, take_fn *by,
                strata_error *err)
{
    struct stat st;
    *out = (struct file_bytes){0};
    /* Looked at before it is opened, since opening a device or FIFO may have effects. */
    if (stat(path, &st) != 0)
        return open_failed(path, "cannot be opened", err);
    if (!S_ISREG(st.st_mode))
        return refuse_kind(path, st.st_mode, err);
    int fd = open(path, OPEN_FLAGS);
    if (fd < 0)
        return open_failed(path, "cannot be opened", err);
    int status = by(out, fd, path, limit, err);
    close(fd);
    return status;
}

int file_read(struct file_bytes *out, const char *path, uint64_t limit, strata_error *err)
{
    return take(out, path, limit, read_open, err);
}

int file_map(struct file_bytes *out, const char *path, uint64_t limit, strata_error *err)
{
    return take(out, path, limit, map_open, err);
}

void file_unmap(struct file_bytes *f)
{
    if (f->data)
        munmap(f->data, f->size);
    *f = (struct file_bytes){0};
}

int file_copy(struct file_bytes *out, const void *bytes, size_t size, const char *name,
              strata_error *err)
{
    *out = (struct file_bytes){0};
    char *data = size < SSIZE_MAX ? allocate(size + 1) : NULL;
    if (!data)
        return error_no_memory(err, size, name);
    memcpy(data, bytes, size);
    data[size] = '\0';
    *out = (struct file_bytes){data, size};
    return STRATA_OK;
}

size_t file_head(void *out, size_t size, const char *path)
{
    struct stat st;
    if (stat(path, &st) != 0 || !S_ISREG(st.st_mode))
        return 0;
    int fd = open(path, OPEN_FLAGS);
    if (fd < 0)
        return 0;
    ssize_t n = read_all(fd, out, size);
    close(fd);
    return n > 0 ? (size_t)n : 0;
}

void file_free(struct file_bytes *f)
{
    if (!f)
        return;
    free(f->data);
    *f = (struct file_bytes){0};
}

bool file_same(const char *a, const char *b)
{
    struct stat one, two;
    return stat(a, &one) == 0 && stat(b, &two) == 0 && one.st_dev == two.st_dev &&
           one.st_ino == two.st_ino;
}

char *file_folder(const char *path, strata_error *err)
{
    const char *slash = strrchr(path, '/');
    if (!slash)
        return duplicate(".", err);
    char *folder = duplicate(path, err);
    if (folder)
        folder[slash == path ? 1 : slash - path] = '\0';
    return folder;
}

/* base/name, or name alone where that is the same. */
static int join(char **out, const char *base, const char *name, strata_error *err)
{
    bool alone = name[0] == '/' || base[0] == '\0' || strcmp(base, ".") == 0;
    size_t b = alone ? 0 : strlen(base), n = strlen(name), size;
    bool slash = b > 0 && base[b - 1] != '/';
    if (!checked_size_add(b, n, &size) || !checked_size_add(size, 2, &size))
        return error_set(err, STRATA_EOVERFLOW, "file name is too long");
    char *path = malloc(size);
    if (!path)
        return error_no_memory(err, size, "a path");
    memcpy(path, base, b);
    if (slash)
        path[b++] = '/';
    memcpy(path + b, name, n + 1);
    *out = path;
    return STRATA_OK;
}

static int check_name(const char *name, strata_error *err)
{
    char shown[PRINTABLE_SIZE];
    size_t length = strlen(name);
    printable(shown, name, length);
    if (length == 0)
        return error_set(err, STRATA_EINVAL,
                         "empty file name; a relative name is needed");
    if (length >= PATH_MAX)
        return error_set(err, STRATA_EINVAL,
                         "%s: file name has %zu bytes, at most %d are allowed", shown,
                         length, PATH_MAX - 1);
    for (size_t i = 0; i < length; i++)
        if ((unsigned char)name[i] < ' ' || name[i] == 0x7f)
            return error_set(err, STRATA_EINVAL,
                             "%s: control character (byte %zu) in a file name", shown, i);
    return STRATA_OK;
}

/* One step of a walk: the component is a folder, or as the last one a regular file with
 * one link. Links make a file of another folder appear here just as symbolic links do. */
static int check_component(int fd, const char *part, bool last, const char *path,
                           strata_error *err)
{
    struct stat st;
    if (fstat(fd, &st) != 0)
        return open_failed(path, "cannot be examined", err);
    if (S_ISLNK(st.st_mode))
        return error_set(
            err, STRATA_EINVAL,
            "%s: '%s' is a symbolic link, which may lead out of the folder; " REMEDY,
            path, part);
    if (last && !S_ISREG(st.st_mode))
        return refuse_kind(path, st.st_mode, err);
    if (!last && !S_ISDIR(st.st_mode))
        return error_set(err, STRATA_EINVAL, "%s: '%s' is %s; a folder is needed", path,
                         part, kind_name(st.st_mode));
    if (last && st.st_nlink > 1)
        return error_set(err, STRATA_EINVAL,
                         "%s: has %ju hard links and may be a file of another folder; "
                         "copy it",
                         path, (uintmax_t)st.st_nlink);
    return STRATA_OK;
}

/* Step from the folder *fd to one of its entries; *fd is replaced, or closed and -1. */
static int walk(int *fd, const char *part, bool last, const char *path, strata_error *err)
{
    int from = *fd, status;
    int next = openat(from, part, O_PATH | O_NOFOLLOW | O_CLOEXEC);
    if (next < 0) {
        status = open_failed(path, "cannot be opened", err);
        goto done;
    }
    status = check_component(next, part, last, path, err);
    if (status != STRATA_OK || !last)
        goto done;
    close(next);
    next = openat(from, part, OPEN_FLAGS | O_NOFOLLOW);
    status = next < 0 ? open_failed(path, "cannot be opened", err)
                      : check_component(next, part, last, path, err);
done:
    close(from);
    if (status != STRATA_OK && next >= 0) {
        close(next);
        next = -1;
    }
    *fd = next;
    return status;
}

/* The entry is a regular file, or with `folder` a folder. */
static int open_beneath(int *out, const char *base, const char *name, const char *path,
                        bool folder, strata_error *err)
{
    char part[NAME_MAX + 1];
    int status = STRATA_OK;
    if (name[0] == '/')
        return error_set(err, STRATA_EINVAL,
                         "%s: absolute name; files are looked for in '%s'; " REMEDY, path,
                         base);
    int fd = open(base[0] ? base : ".", O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return open_failed(base, "cannot be opened", err);
    for (const char *at = name, *end; status == STRATA_OK; at = end + 1) {
        end = strchrnul(at, '/');
        size_t n = (size_t)(end - at);
        if (n > NAME_MAX || (n == 2 && at[0] == '.' && at[1] == '.')) {
            close(fd);
            return error_set(err, STRATA_EINVAL,
                             n == 2 ? "%s: '..' leads out of the folder; " REMEDY
                                    : "%s: a component has more than 255 bytes",
                             path);
        }
        memcpy(part, n ? at : ".", n ? n : 1);
        part[n ? n : 1] = '\0';
        status = walk(&fd, part, *end == '\0' && !folder, path, err);
        if (*end == '\0')
            break;
    }
    *out = fd;
    return status;
}

int file_resolve(char **out, const char *base, const char *name, int anywhere,
                 strata_error *err)
{
    int fd = -1;
    char *path = NULL;
    int status = check_name(name, err);
    if (status == STRATA_OK)
        status = join(&path, base, name, err);
    if (status == STRATA_OK && !anywhere)
        status = open_beneath(&fd, base, name, path, false, err);
    if (fd >= 0)
        close(fd);
    if (status != STRATA_OK) {
        free(path);
        path = NULL;
    }
    *out = path;
    return status;
}

int file_resolve_folder(char **out, const char *base, const char *name, strata_error *err)
{
    int fd = -1;
    char *path = NULL;
    int status = check_name(name, err);
    *out = NULL;
    if (status == STRATA_OK)
        status = join(&path, base, name, err);
    if (status == STRATA_OK)
        status = open_beneath(&fd, base, name, path, true, err);
    if (fd >= 0)
        close(fd);
    if (status == STRATA_OK && !(*out = realpath(path, NULL)))
        status = open_failed(path, "cannot be resolved", err);
    free(path);
    return status;
}

int file_read_beneath(struct file_bytes *out, char **path, const char *base,
                      const char *name, int anywhere, uint64_t limit, strata_error *err)
{
    int fd = -1;
    char *joined = NULL;
    *out = (struct file_bytes){0};
    int status = check_name(name, err);
    if (status == STRATA_OK)
        status = join(&joined, base, name, err);
    if (status == STRATA_OK && anywhere)
        status = file_read(out, joined, limit, err);
    else if (status == STRATA_OK)
        status = open_beneath(&fd, base, name, joined, false, err);
    if (fd >= 0) {
        status = read_open(out, fd, joined, limit, err);
        close(fd);
    }
    if (path && status == STRATA_OK) {
        *path = joined;
        joined = NULL;
    }
    free(joined);
    return status;
}

int file_map_beneath(struct file_bytes *out, const char *base, const char *name,
                     uint64_t limit, strata_error *err)
{
    int fd = -1;
    char *path = NULL;
    *out = (struct file_bytes){0};
    int status = check_name(name, err);
    if (status == STRATA_OK)
        status = join(&path, base, name, err);
    if (status == STRATA_OK)
        status = open_beneath(&fd, base, name, path, false, err);
    if (fd >= 0) {
        status = map_open(out, fd, path, limit, err);
        close(fd);
    }
    free(path);
    return status;
}
