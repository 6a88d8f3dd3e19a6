/* SPDX-License-Identifier: Apache-2.0
 *
 * The record is text, a line a file, appended whole: processes that write at once leave
 * each other's lines alone. One that grew large begins anew.
 */
#ifdef HAVE_CONFIG_H
#include <config.h>
#endif
#include "registry/trial/known.h"

#include <fcntl.h>
#include <gnu/libc-version.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/alloc.h"
#include "core/installed.h"

#ifndef PACKAGE_VERSION
#define PACKAGE_VERSION "0"
#endif

enum { RECORD_BYTES = 256 << 10, LINE = 256 };

static int open_record(void)
{
    char path[PATH_MAX];
    struct stat st;
    if (!installed_cache(path, "") || strlen(path) + sizeof "/modules" > sizeof path)
        return -1;
    memcpy(path + strlen(path), "/modules", sizeof "/modules");
    int fd = open(path, O_RDWR | O_APPEND | O_CREAT | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK,
                  0600);
    if (fd >= 0 && (fstat(fd, &st) != 0 || !S_ISREG(st.st_mode) ||
                    st.st_uid != geteuid() || (st.st_mode & (S_IWGRP | S_IWOTH)) ||
                    (st.st_size > RECORD_BYTES && ftruncate(fd, 0) != 0))) {
        close(fd);
        return -1;
    }
    return fd;
}

int known_open(struct known *k, strata_error *err)
{
    *k = (struct known){.fd = open_record()};
    if (k->fd < 0)
        return STRATA_OK;
    k->text = zalloc(RECORD_BYTES + 1, 1, "the record of modules", err);
    if (!k->text) {
        known_close(k);
        return STRATA_ENOMEM;
    }
    for (size_t n = 0; n < RECORD_BYTES;) {
        ssize_t got = pread(k->fd, k->text + n, RECORD_BYTES - n, (off_t)n);
        if (got <= 0)
            break;
        n += (size_t)got;
    }
    return STRATA_OK;
}

void known_close(struct known *k)
{
    if (k->fd >= 0)
        close(k->fd);
    free(k->text);
    *k = (struct known){.fd = -1};
}

/* A line has the versions of what opens the file, too: another loader may stumble where
 * this one did not. */
static void write_line(char line[LINE], const struct module *m)
{
    const struct note_result *f = &m->result;
    snprintf(line, LINE, "%llx %llx %llx %lld.%09ld %lld.%09ld %s %s\n",
             (unsigned long long)f->device, (unsigned long long)f->inode,
             (unsigned long long)f->size, (long long)f->modified.tv_sec,
             f->modified.tv_nsec, (long long)f->changed.tv_sec, f->changed.tv_nsec,
             PACKAGE_VERSION, gnu_get_libc_version());
}

bool known_has(const struct known *k, const struct module *m)
{
    char line[LINE];
    write_line(line, m);
    const size_t n = strlen(line);
    for (const char *at = k->text; at && (at = strstr(at, line)); at += n)
        if (at == k->text || at[-1] == '\n')
            return true;
    return false;
}

void known_add(struct known *k, const struct module *m)
{
    char line[LINE];
    write_line(line, m);
    if (k->fd >= 0 && write(k->fd, line, strlen(line)) < 0)
        log_line(STRATA_LOG_DEBUG, "plugin %s: not recorded as good", m->path);
}
