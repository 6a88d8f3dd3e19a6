/* SPDX-License-Identifier: Apache-2.0
 *
 * Atomic writing: a reader of the target sees the old file or the new one, whole. Of a
 * process that is killed a temporary file may stay; the next one that writes into the
 * folder removes it.
 */
#ifdef HAVE_CONFIG_H
#include <config.h>
#endif
#include "io/file.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/checked.h"

#define TEMPORARY_TRIES 100

/* A device or link given as the target would be replaced by rename, not written to.
 * *mode is that of the old file, 0 if there is none. */
static int check_target(const char *path, mode_t *mode, strata_error *err)
{
    struct stat st;
    *mode = 0;
    if (path[0] == '\0')
        return error_set(err, STRATA_EINVAL, "empty file name; a path is needed");
    if (lstat(path, &st) != 0)
        return STRATA_OK;
    *mode = st.st_mode & 0777;
    if (!S_ISREG(st.st_mode))
        return error_set(err, STRATA_EINVAL,
                         "%s: exists and is not a regular file; name another file", path);
    /* The folder's permissions alone would let it be replaced; root may do anything. */
    if ((*mode & 0222) == 0 || faccessat(AT_FDCWD, path, W_OK, AT_EACCESS) != 0)
        return error_set(err, STRATA_EIO,
                         "%s: is write-protected; name another file, or make it writable",
                         path);
    return STRATA_OK;
}

/* ---- temporary files --------------------------------------------------------------- */

/* Of a process that is gone: nobody has its number, and nobody holds its lock. */
static void remove_if_stale(int folder, const char *name)
{
    long pid;
    int n, length = 0;
    if (sscanf(name, ".strata-%ld-%d.tmp%n", &pid, &n, &length) != 2 || name[length] ||
        pid <= 0 || length == 0 || kill((pid_t)pid, 0) == 0 || errno != ESRCH)
        return;
    int fd = openat(folder, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0)
        return;
    if (flock(fd, LOCK_EX | LOCK_NB) == 0)
        unlinkat(folder, name, 0);
    close(fd);
}

static void remove_stale(const char *folder)
{
    DIR *d = opendir(folder);
    for (struct dirent *e; d && (e = readdir(d));)
        if (e->d_name[0] == '.')
            remove_if_stale(dirfd(d), e->d_name);
    if (d)
        closedir(d);
}

/* A new file beside the target, locked while its process lives; *name is malloc-ed, *fd
 * open for writing. */
static int create_temporary(char **name, int *fd, const char *folder, const char *path,
                            strata_error *err)
{
    size_t size;
    if (!checked_size_add(strlen(folder), sizeof "/.strata-.tmp" + 48, &size))
        return error_set(err, STRATA_EOVERFLOW, "file name is too long");
    char *temporary = malloc(size);
    if (!temporary)
        return error_no_memory(err, size, "a path");
    for (int i = 0; i < TEMPORARY_TRIES; i++) {
        snprintf(temporary, size, "%s/.strata-%ld-%d.tmp", folder, (long)getpid(), i);
        *fd = open(temporary, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666);
        if (*fd >= 0 || errno != EEXIST)
            break;
    }
    if (*fd < 0) {
        int code = errno == ENOENT ? STRATA_ENOTFOUND : STRATA_EIO;
        error_errno(err, code, "%s: cannot write in folder '%s'", path, folder);
        free(temporary);
        return code;
    }
    flock(*fd, LOCK_EX | LOCK_NB); /* where locks do not work, the number must do */
    *name = temporary;
    return STRATA_OK;
}

/* ---- writing ----------------------------------------------------------------------- */

static int write_all(int fd, const char *data, size_t size)
{
    while (size > 0) {
        ssize_t n = write(fd, data, size);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return -1;
        data += n;
        size -= (size_t)n;
    }
    return 0;
}

/* Make the rename last. File systems that cannot sync a folder say EINVAL, and a folder
 * may allow writing but not reading; the new file is in place in both cases. */
static int sync_folder(const char *folder)
{
    int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return errno == EACCES ? 0 : -1;
    int result = fsync(fd);
    if (result != 0 && (errno == EINVAL || errno == EROFS))
        result = 0;
    int saved = errno;
    close(fd);
    errno = saved;
    return result;
}

/* So that a full disk shows before much is written; not every file system can. */
static int reserve(int fd, const struct file_piece *pieces, size_t n)
{
    off_t size = 0;
    for (size_t i = 0; i < n; i++)
        if (__builtin_add_overflow(size, pieces[i].size, &size))
            return errno = EFBIG, -1;
    if (size == 0 || fallocate(fd, 0, 0, size) == 0)
        return 0;
    return errno == ENOSPC || errno == EDQUOT || errno == EFBIG ? -1 : 0;
}

/* File systems without permissions have one mode for all, and no call to set it. */
static int set_mode(int fd, mode_t mode)
{
    struct stat st;
    if (mode == 0)
        return 0;
    if (fstat(fd, &st) != 0)
        return -1;
    return (st.st_mode & 0777) == mode ? 0 : fchmod(fd, mode);
}

/* The mode first: what others could not read before, they cannot while it is written. */
static int write_pieces(int fd, const struct file_piece *pieces, size_t n, mode_t mode)
{
    if (set_mode(fd, mode) != 0 || reserve(fd, pieces, n) != 0)
        return -1;
    for (size_t i = 0; i < n; i++)
        if (write_all(fd, pieces[i].data, pieces[i].size) != 0)
            return -1;
    return fsync(fd);
}

int file_write_pieces(const char *path, const struct file_piece *pieces, size_t n,
                      strata_error *err)
{
    char *folder = NULL, *temporary = NULL;
    int fd = -1;
    mode_t mode;
    int status = check_target(path, &mode, err);
    if (status != STRATA_OK)
        return status;
    folder = file_folder(path, err);
    if (!folder)
        return STRATA_ENOMEM;
    remove_stale(folder);
    status = create_temporary(&temporary, &fd, folder, path, err);
    if (status != STRATA_OK)
        goto done;
    bool written = write_pieces(fd, pieces, n, mode) == 0;
    int failure = errno;
    if (close(fd) != 0 && written) {
        written = false;
        failure = errno;
    }
    errno = failure;
    if (!written || rename(temporary, path) != 0) {
        status = error_errno(err, STRATA_EIO, "%s: cannot be written", path);
        unlink(temporary);
        goto done;
    }
    if (sync_folder(folder) != 0)
        status = error_errno(err, STRATA_EIO,
                             "%s: written, but folder '%s' cannot be "
                             "synchronised",
                             path, folder);
done:
    free(temporary);
    free(folder);
    return status;
}

int file_writable(const char *path, strata_error *err)
{
    char *temporary = NULL;
    int fd = -1;
    mode_t mode;
    int status = check_target(path, &mode, err);
    char *folder = status == STRATA_OK ? file_folder(path, err) : NULL;
    if (status == STRATA_OK)
        status =
            folder ? create_temporary(&temporary, &fd, folder, path, err) : STRATA_ENOMEM;
    if (status == STRATA_OK) {
        unlink(temporary);
        close(fd);
    }
    free(temporary);
    free(folder);
    return status;
}

int file_lock(const char *path)
{
    char *folder = file_folder(path, NULL);
    int fd = folder ? open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
    while (fd >= 0 && flock(fd, LOCK_EX) != 0 && errno == EINTR)
        ;
    free(folder);
    return fd;
}

void file_unlock(int lock)
{
    if (lock >= 0)
        close(lock);
}

int file_write(const char *path, const void *data, size_t size, strata_error *err)
{
    return file_write_pieces(path, &(struct file_piece){data, size}, 1, err);
}
