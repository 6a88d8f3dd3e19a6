/* SPDX-License-Identifier: Apache-2.0
 *
 * The folder of a model: REPOSITORY/NAME/config.pbtxt, labels.txt, VERSION/FILES. A
 * server may watch it: a version is written under a name that is none, and renamed when
 * whole; the config is there before it.
 */
#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "io/stream.h"
#include "io/file.h"
#include "tools/deploy/deploy.h"

enum { MAX_CONFIG = 1 << 20 };

struct folder {
    char model[2048], version[2304], draft[2304];
};

static int make_folder(const char *path, strata_error *err)
{
    if (mkdir(path, 0777) == 0 || errno == EEXIST)
        return STRATA_OK;
    return error_set(err, STRATA_EIO, "%s: cannot make the folder: %s", path,
                     strerror(errno));
}

/* One more than the largest that is there. */
static int64_t next_version(const char *model)
{
    int64_t largest = 0;
    DIR *d = opendir(model);
    for (const struct dirent *e; d && (e = readdir(d));) {
        char *end;
        const long long n = strtoll(e->d_name, &end, 10);
        if (end != e->d_name && !*end && n > largest)
            largest = n;
    }
    if (d)
        closedir(d);
    return largest < INT32_MAX ? largest + 1 : largest;
}

static int name_folders(struct folder *f, struct deployment *d, strata_error *err)
{
    const int n = snprintf(f->model, sizeof f->model, "%s/%s", d->repository, d->name);
    if (n < 0 || (size_t)n >= sizeof f->model)
        return error_set(err, STRATA_EINVAL, "%s: the path is too long", d->repository);
    if (d->version == 0)
        d->version = next_version(f->model);
    snprintf(f->version, sizeof f->version, "%s/%" PRId64, f->model, d->version);
    snprintf(f->draft, sizeof f->draft, "%s/.%" PRId64 ".%ld", f->model, d->version,
             (long)getpid());
    if (access(f->version, F_OK) == 0)
        return error_set(err, STRATA_EINVAL,
                         "%s is there already; versions are never changed: leave out "
                         "--version for the next one",
                         f->version);
    return STRATA_OK;
}

static int write_engines(const struct folder *f, const struct deployment *d,
                         strata_error *err)
{
    char path[2560];
    int status = make_folder(f->draft, err);
    for (size_t i = 0; i < d->n && status == STRATA_OK; i++) {
        const struct deployed *e = &d->engines[i];
        snprintf(path, sizeof path, "%s/%s", f->draft, e->name);
        status = file_write(path, e->file.bytes.data, e->file.bytes.size, err);
    }
    return status;
}

static void remove_draft(const struct folder *f, const struct deployment *d)
{
    char path[2560];
    for (size_t i = 0; i < d->n; i++) {
        snprintf(path, sizeof path, "%s/%s", f->draft, d->engines[i].name);
        unlink(path);
    }
    rmdir(f->draft);
}

static int write_labels(const struct folder *f, const strata_network *net,
                        strata_error *err)
{
    char path[2560], *text = NULL;
    size_t size = 0;
    FILE *out = text_stream(&text, &size);
    if (!out)
        return error_no_memory(err, 0, "labels");
    for (size_t i = 0; i < net->n_labels; i++)
        fprintf(out, "%s\n", net->labels[i]);
    snprintf(path, sizeof path, "%s/labels.txt", f->model);
    int status = text_finish(out, &text) ? file_write(path, text, size, err)
                                         : error_no_memory(err, 0, "labels");
    free(text);
    return status;
}

static bool has_line(const char *text, const char *line, size_t size)
{
    for (const char *at = text; at; at = strchr(at, '\n') ? strchr(at, '\n') + 1 : NULL)
        if (strcspn(at, "\n") == size && !strncmp(at, line, size))
            return true;
    return false;
}

/* What is left of `text` are its lines that `theirs` lacks, comments aside. */
static void keep_lacking(char *text, const char *theirs)
{
    char *out = text;
    for (const char *line = text; *line;) {
        const size_t size = strcspn(line, "\n"), all = size + (line[size] == '\n');
        if (*line != '#' && !has_line(theirs, line, size)) {
            memmove(out, line, all);
            out += all;
        }
        line += all;
    }
    *out = '\0';
}

/* What the config that is there lacks of the engines' own: a server may refuse the
 * version for it. */
static int find_lacking(struct deployment *d, const char *path, strata_error *err)
{
    struct file_bytes found;
    bool labels;
    int status = file_read(&found, path, MAX_CONFIG, err);
    if (status != STRATA_OK)
        return status;
    d->lacking = deploy_config(d, &labels);
    if (d->lacking)
        keep_lacking(d->lacking, found.data);
    else
        status = error_no_memory(err, 0, "a config");
    file_free(&found);
    return status;
}

/* One that is there may have been edited. */
static int write_config(const struct folder *f, struct deployment *d, bool force,
                        strata_error *err)
{
    char path[2560];
    bool labels;
    snprintf(path, sizeof path, "%s/config.pbtxt", f->model);
    d->keeps_config = !force && (access(path, F_OK) == 0 || errno != ENOENT);
    if (d->keeps_config)
        return find_lacking(d, path, err);
    char *text = deploy_config(d, &labels);
    if (!text)
        return error_no_memory(err, 0, "a config");
    int status = labels ? write_labels(f, d->engines->network, err) : STRATA_OK;
    if (status == STRATA_OK)
        status = file_write(path, text, strlen(text), err);
    free(text);
    return status;
}

int deploy_write(struct deployment *d, bool force, strata_error *err)
{
    struct folder f;
    int status = name_folders(&f, d, err);
    if (status == STRATA_OK)
        status = make_folder(d->repository, err);
    if (status == STRATA_OK)
        status = make_folder(f.model, err);
    if (status == STRATA_OK)
        status = write_engines(&f, d, err);
    if (status == STRATA_OK)
        status = write_config(&f, d, force, err);
    if (status == STRATA_OK && rename(f.draft, f.version) != 0)
        status = error_set(err, STRATA_EIO, "%s: cannot be named so: %s", f.version,
                           strerror(errno));
    if (status != STRATA_OK)
        remove_draft(&f, d);
    return status;
}
