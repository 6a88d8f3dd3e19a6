/* SPDX-License-Identifier: Apache-2.0
 *
 * From a path to validated tables: note, dlopen, entry, copy.
 */
#ifdef HAVE_CONFIG_H
#include <config.h>
#endif
#include "registry/module.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "core/alloc.h"
#include "registry/loading/guard.h"
#include "registry/host.h"
#include "registry/loading/mapped.h"
#include "registry/name.h"

#define refuse(err, ...) error_set(err, STRATA_EMODULE, __VA_ARGS__)

/* What the loader's text means to the author of a plugin. */
static const struct {
    const char *text, *remedy;
} remedies[] = {
    {"undefined symbol", "plugins must not link the core; -Wl,-z,defs finds this when "
                         "the plugin is linked"},
    {"static TLS block", "build without -ftls-model=initial-exec"},
    {"failed to map segment", "its file system is mounted noexec, or a security policy "
                              "forbids it: move it to another"},
    {"cannot open shared object file", "install the library it names, or set the "
                                       "plugin's run path"},
};

int module_open(struct module **out, const char *path, uint32_t driver, strata_error *err)
{
    struct module *m = *out = zalloc(1, sizeof *m, "a module", err);
    if (!m)
        return STRATA_ENOMEM;
    m->path = duplicate(path, err);
    if (!m->path)
        return STRATA_ENOMEM;
    int status = note_read(&m->result, path, err);
    if (status == STRATA_OK)
        status = note_accept(&m->result.note, driver, err);
    if (status != STRATA_OK)
        return status;
    m->resolved = realpath(path, NULL);
    return m->resolved ? STRATA_OK
                       : error_errno(err, status_of_errno(errno, STRATA_EMODULE),
                                     "cannot resolve its path");
}

static int check_unchanged(const struct module *m, strata_error *err)
{
    struct note_result now;
    int status = note_examine(&now, m->resolved, err);
    if (status != STRATA_OK)
        return status;
    if (now.inode == m->result.inode && now.device == m->result.device &&
        !strcmp(now.build_id, m->result.build_id) &&
        !memcmp(&now.note, &m->result.note, sizeof now.note))
        return STRATA_OK;
    return refuse(err, "it changed after its note was read: start again");
}

/* Whether the file's code may not be run: noexec, or a security policy. */
static bool is_forbidden(const struct module *m)
{
    enum { PAGE = 4096 };
    const int fd = open(m->resolved, O_RDONLY | O_CLOEXEC);
    void *at =
        fd < 0 ? NULL : mmap(NULL, PAGE, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0);
    const bool forbidden = at == MAP_FAILED && (errno == EACCES || errno == EPERM);
    if (at && at != MAP_FAILED)
        munmap(at, PAGE);
    if (fd >= 0)
        close(fd);
    return forbidden;
}

/* The loader gives no error number where it cannot map a file: for memory, unless that is
 * forbidden. */
static bool lacks_memory(const struct module *m, const char *text)
{
    return strstr(text, strerror(ENOMEM)) ||
           (strstr(text, "failed to map segment") && !is_forbidden(m));
}

/* The process has too many files open, or a device failed: nothing of the module. */
static bool lacks_files(const char *text)
{
    return strstr(text, strerror(EMFILE)) || strstr(text, strerror(ENFILE)) ||
           strstr(text, strerror(EIO));
}

static int explain_dlerror(const struct module *m, strata_error *err)
{
    const char *text = dlerror();
    size_t n = strlen(m->resolved);
    if (!text)
        text = "the loader gives no reason";
    if (!strncmp(text, m->resolved, n) && !strncmp(text + n, ": ", 2))
        text += n + 2;
    if (lacks_memory(m, text))
        return error_set(err, STRATA_ENOMEM, "out of memory: %s", text);
    if (lacks_files(text))
        return error_set(err, STRATA_EIO, "%s", text);
    for (size_t i = 0; i < ARRAY_LENGTH(remedies); i++)
        if (strstr(text, remedies[i].text))
            return refuse(err, "%s; %s", text, remedies[i].remedy);
    return refuse(err, "%s", text);
}

/* The module's own entry: dlsym also searches the libraries it depends on. */
static strata_entry find_entry(void *handle)
{
    struct link_map *own = NULL, *found = NULL;
    Dl_info info;
    strata_entry entry;
    void *symbol = dlsym(handle, STRATA_ENTRY_NAME);
    if (!symbol || dlinfo(handle, RTLD_DI_LINKMAP, &own) != 0 ||
        dladdr1(symbol, &info, (void **)&found, RTLD_DL_LINKMAP) == 0 || own != found)
        return NULL;
    memcpy(&entry, &symbol, sizeof entry);
    return entry;
}

static int call_entry(struct module *m, void *handle, const strata_module **out,
                      strata_error *err)
{
    strata_error said = {0};
    strata_entry entry = find_entry(handle);
    if (!entry)
        return refuse(err,
                      "no symbol %s, though there is a note: the entry is hidden; check "
                      "visibility and export list",
                      STRATA_ENTRY_NAME);
    host_catch(&said);
    *out = entry(registry_host());
    host_catch(NULL);
    if (*out)
        return STRATA_OK;
    const char *why = said.message[0] ? said.message : "it gives no reason";
    m->lacks_memory = said.status == STRATA_ENOMEM;
    return m->lacks_memory
               ? error_set(err, STRATA_ENOMEM, "out of memory in its entry: %s", why)
               : refuse(err, "module refused to load: %s", why);
}

/* Append one difference; the text is cut where it grows long. */
static void differ(char *text, size_t size, const char *what, const char *name)
{
    size_t n = strlen(text);
    snprintf(text + n, size - n, "%s%s '%s'", n ? ", " : "", what, name);
}

static bool table_defines(const struct descriptor *d, const char *name, size_t n)
{
    for (size_t i = 0; i < d->n_layers; i++) {
        const char *have = d->layers[i].layer.layer.name;
        if (strlen(have) == n && !memcmp(have, name, n))
            return true;
    }
    return false;
}

static bool table_extends(const struct descriptor *d, const char *full, size_t n)
{
    for (size_t i = 0; i < d->n_extends; i++)
        if (strlen(d->extends[i].layer) == n && !memcmp(d->extends[i].layer, full, n))
            return true;
    return false;
}

/* The note is what look-ups go by, so a difference hides or invents layers. */
static int compare_note(struct module *m, strata_error *err)
{
    const struct descriptor *d = &m->tables;
    const char *rest = m->result.note.layers, *item;
    char text[1024] = "", name[512];
    size_t n;
    while ((item = name_next(&rest, ',', &n))) {
        snprintf(name, sizeof name, "%.*s", (int)n, item);
        if (item[0] == '+' ? !table_extends(d, item + 1, n - 1)
                           : !table_defines(d, item, n))
            differ(text, sizeof text, "the note alone has", name);
    }
    for (size_t i = 0; i < d->n_layers; i++)
        if (!module_defines(m, d->layers[i].layer.layer.name))
            differ(text, sizeof text, "the tables alone have",
                   d->layers[i].layer.layer.name);
    for (size_t i = 0; i < d->n_extends; i++)
        if (!module_extends(m, d->extends[i].layer))
            differ(text, sizeof text, "the tables alone extend", d->extends[i].layer);
    if (!text[0])
        return STRATA_OK;
    m->warning = duplicate(text, err);
    return m->warning ? STRATA_OK : STRATA_ENOMEM;
}

static int take_tables(struct module *m, const strata_module *module, strata_error *err)
{
    int status = descriptor_copy(&m->tables, module, m, err);
    if (status == STRATA_OK && strcmp(m->tables.module.ns, m->result.note.ns) != 0)
        status = refuse(err, "its note says namespace '%s', its table '%s'",
                        m->result.note.ns, m->tables.module.ns);
    if (status == STRATA_OK &&
        strcmp(m->tables.module.version, m->result.note.version) != 0)
        status = refuse(err, "its note says version '%s', its table '%s'",
                        m->result.note.version, m->tables.module.version);
    if (status == STRATA_OK)
        status = compare_note(m, err);
    return status;
}

int module_load(struct module *m, void (*opened)(void *user), void *user,
                strata_error *err)
{
    const strata_module *module;
    int status = check_unchanged(m, err);
    m->lacks_memory = false;
    if (status != STRATA_OK)
        return status;
    guard_arm(opened ? NULL : m->path); /* who watches sees how the process ends */
    /* NOW: a missing symbol shows here, not in run. LOCAL: no module sees another. */
    void *handle = dlopen(m->resolved, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    if (handle)
        mapped_add(handle);
    if (handle && opened)
        opened(user);
    status = handle ? call_entry(m, handle, &module, err) : explain_dlerror(m, err);
    guard_arm(NULL);
    if (status == STRATA_OK)
        status = take_tables(m, module, err);
    m->loaded = status == STRATA_OK;
    return status;
}

void module_free(struct module *m)
{
    if (!m)
        return;
    descriptor_free(&m->tables);
    free(m->path);
    free(m->resolved);
    free(m->warning);
    free(m->fault);
    free(m);
}

bool module_defines(const struct module *m, const char *name)
{
    return name[0] != '+' && name_listed(m->result.note.layers, name);
}

bool module_extends(const struct module *m, const char *full)
{
    const char *rest = m->result.note.layers, *item;
    size_t n, size = strlen(full);
    while ((item = name_next(&rest, ',', &n)))
        if (item[0] == '+' && n == size + 1 && !memcmp(item + 1, full, size))
            return true;
    return false;
}

struct module_info module_info(const struct module *m)
{
    const strata_note *note = &m->result.note;
    return (struct module_info){
        .path = m->path,
        .ns = note->ns,
        .version = note->version,
        .layers = note->layers,
        .build_id = m->result.build_id,
        .abi_minor = note->abi_minor,
        .cudart = note->cudart,
        .loaded = m->loaded,
        .duplicate = m->duplicate,
        .rejected = m->rejected,
    };
}
