/* SPDX-License-Identifier: Apache-2.0
 *
 * The file itself: that it loads as a network would load it, what it exports, how long
 * its entry takes, what it does to the process, and how it answers for extensions.
 */
#include <strata/module.h>

#include <elf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "check/test/test.h"
#include "registry/module.h"
#include "core/trust.h"

#define ENTRY_LIMIT_MS 100
#define ENTRY_TIMES 5 /* all of them slow: it is not the machine */

static double now_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec * 1e-6;
}

static void enter(struct check_child *c, const char *phase)
{
    snprintf(c->report->place.phase, sizeof c->report->place.phase, "%s", phase);
}

/* ---- exported symbols
 * -------------------------------------------------------------------- */

/* What the linker itself puts into every shared object. */
static bool is_linkers(const char *name)
{
    static const char *const names[] = {"_init", "_fini", "_edata", "_end",
                                        "__bss_start"};
    for (size_t i = 0; i < ARRAY_LENGTH(names); i++)
        if (strcmp(name, names[i]) == 0)
            return true;
    return false;
}

static bool is_exported(const Elf64_Sym *s)
{
    const int binding = ELF64_ST_BIND(s->st_info),
              seen = ELF64_ST_VISIBILITY(s->st_other);
    return s->st_shndx != SHN_UNDEF && s->st_shndx < SHN_LORESERVE &&
           (binding == STB_GLOBAL || binding == STB_WEAK) &&
           (seen == STV_DEFAULT || seen == STV_PROTECTED);
}

/* The sections lie inside the file: the linker that made it loads. */
static void check_symbols(struct check_child *c, const char *bytes, size_t size,
                          const Elf64_Shdr *symbols, const Elf64_Shdr *strings)
{
    const Elf64_Sym *s = (const void *)(bytes + symbols->sh_offset);
    const char *text = bytes + strings->sh_offset;
    char names[600] = "";
    size_t used = 0;
    if (symbols->sh_offset + symbols->sh_size > size ||
        strings->sh_offset + strings->sh_size > size)
        return;
    for (size_t i = 1; i < symbols->sh_size / sizeof *s; i++) {
        const char *name = s[i].st_name < strings->sh_size ? text + s[i].st_name : "";
        if (!is_exported(&s[i]) || is_linkers(name) ||
            strcmp(name, STRATA_ENTRY_NAME) == 0 || used > sizeof names - 80)
            continue;
        used += (size_t)snprintf(names + used, sizeof names - used, "%s%.60s",
                                 used ? ", " : "", name);
    }
    if (used)
        check_found(c, "exports",
                    "it also exports %s: build with -fvisibility=hidden, and declare "
                    "what one file alone uses static",
                    names);
}

static void check_exports(struct check_child *c, const char *path)
{
    FILE *f = fopen(path, "rb");
    long size = f && fseek(f, 0, SEEK_END) == 0 ? ftell(f) : -1;
    char *bytes = size > (long)sizeof(Elf64_Ehdr) ? malloc((size_t)size) : NULL;
    if (bytes && fseek(f, 0, SEEK_SET) == 0 &&
        fread(bytes, 1, (size_t)size, f) == (size_t)size) {
        const Elf64_Ehdr *h = (const void *)bytes;
        const Elf64_Shdr *sections = (const void *)(bytes + h->e_shoff);
        const bool listed = h->e_shoff + h->e_shnum * sizeof *sections <= (size_t)size;
        for (size_t i = 0; listed && i < h->e_shnum; i++)
            if (sections[i].sh_type == SHT_DYNSYM && sections[i].sh_link < h->e_shnum)
                check_symbols(c, bytes, (size_t)size, &sections[i],
                              &sections[sections[i].sh_link]);
    }
    free(bytes);
    if (f)
        fclose(f);
}

/* ---- extensions
 * --------------------------------------------------------------------------- */

static void check_extension(struct check_child *c, const struct registry_layer *l)
{
    static const char *const unknown[] = {"", "strata.nothing/1", STRATA_REFERENCE_V1 "x",
                                          "strata.reference", "STRATA.REFERENCE/1"};
    const void *(*extension)(const char *id) = l->layer.extension;
    if (!extension)
        return;
    enter(c, "extension");
    for (size_t i = 0; i < ARRAY_LENGTH(unknown); i++)
        if (extension(unknown[i]))
            check_found(c, "extension-answer", "layer %s answers \"%s\"", l->layer.name,
                        unknown[i]);
    if (extension(STRATA_REFERENCE_V1) != extension(STRATA_REFERENCE_V1))
        check_found(c, "extension-answer", "layer %s gives another reference each time",
                    l->layer.name);
    const strata_reference *r = extension(STRATA_REFERENCE_V1);
    if (r && (r->struct_size < sizeof *r || !r->run))
        check_found(c, "extension-answer",
                    "the reference of layer %s has struct_size %u, need %zu, or no run",
                    l->layer.name, r->struct_size, sizeof *r);
}

/* ---- tables
 * ------------------------------------------------------------------------------- */

static void list_layer(struct check_child *c, const char *name, bool own,
                       const struct registry_impl *impls, size_t n)
{
    struct check_report *r = c->report;
    if (r->n_layers == REPORT_LAYERS)
        return;
    struct report_layer *l = &r->layers[r->n_layers++];
    snprintf(l->name, sizeof l->name, "%s", name);
    l->own = own;
    for (size_t i = 0; i < n; i++) {
        const strata_impl *impl = &impls[i].impl;
        const size_t used = strlen(l->impls);
        const bool wanted = !c->o->impl || strcmp(c->o->impl, impl->name) == 0;
        snprintf(l->impls + used, sizeof l->impls - used, "%s%s", used ? ", " : "",
                 impl->name);
        l->host |= wanted && impl->device == STRATA_HOST;
        l->cuda |= wanted && impl->device == STRATA_CUDA;
    }
}

static void list_layers(struct check_child *c, const struct module *m)
{
    const struct descriptor *d = &m->tables;
    for (size_t i = 0; i < d->n_layers; i++)
        list_layer(c, d->layers[i].layer.full_name, true, d->layers[i].own,
                   d->layers[i].n_own);
    for (size_t i = 0; i < d->n_extends; i++)
        list_layer(c, d->extends[i].layer, false, d->extends[i].impls,
                   d->extends[i].n_impls);
}

/* The entry is timed from here on: libraries that the file needs load before. */
struct opening {
    struct check_child *child;
    double at; /* ms */
};

static void opened(void *user)
{
    struct opening *o = user;
    o->at = now_ms();
    enter(o->child, "entry");
}

/* A second entry, through a second handle of the same mapping; its time in ms. */
static double check_second_read(struct check_child *c, const struct module *m)
{
    strata_error err = {0};
    struct module *again = NULL;
    struct opening o = {.child = c, .at = now_ms()};
    int status = module_open(&again, c->o->file, 0, &err);
    if (status == STRATA_OK)
        status = module_load(again, opened, &o, &err);
    const double ms = now_ms() - o.at;
    if (status != STRATA_OK)
        check_found(c, "tables-change", "read again, the module is refused: %s",
                    err.message);
    else if (again->tables.n_layers != m->tables.n_layers ||
             again->tables.n_extends != m->tables.n_extends)
        check_found(c, "tables-change", "read again, it has %zu layers, not %zu",
                    again->tables.n_layers, m->tables.n_layers);
    for (size_t i = 0;
         status == STRATA_OK && i < m->tables.n_layers && i < again->tables.n_layers;
         i++) {
        const struct registry_layer *a = &m->tables.layers[i].layer;
        const struct registry_layer *b = &again->tables.layers[i].layer;
        if (strcmp(a->full_name, b->full_name) != 0 || a->n_attrs != b->n_attrs ||
            a->n_impls != b->n_impls || a->layer.params_size != b->layer.params_size ||
            a->layer.shape != b->layer.shape)
            check_found(c, "tables-change", "layer %s differs when read again",
                        a->full_name);
    }
    module_free(again);
    return ms;
}

static void refuse(struct check_child *c, const char *message)
{
    check_found(c, "refused", "%s", message);
}

static void check_time(struct check_child *c, double ms, const struct module *m)
{
    double again = check_second_read(c, m);
    for (int i = 2; i < ENTRY_TIMES && ms > ENTRY_LIMIT_MS && again > ENTRY_LIMIT_MS; i++)
        again = check_second_read(c, m);
    if (ms > ENTRY_LIMIT_MS && again > ENTRY_LIMIT_MS)
        check_found(c, "slow-entry", "it took %.0f ms, and %.0f ms the %dth time", ms,
                    again, ENTRY_TIMES);
}

static void check_loaded(struct check_child *c, const struct module *m, double ms)
{
    if (m->warning)
        check_found(c, "refused", "the note differs from the tables: %s", m->warning);
    check_environment(c, true);
    check_exports(c, m->resolved);
    check_time(c, ms, m);
    for (size_t i = 0; i < m->tables.n_layers; i++)
        check_extension(c, &m->tables.layers[i].layer);
    list_layers(c, m);
    c->report->runs = 1;
}

/* Tables without a file are validated where a registry takes them. */
static void check_given(struct check_child *c)
{
    const strata_registry_options none = {.struct_size = sizeof none,
                                          .no_default_path = 1};
    strata_error err = {0};
    strata_registry *r = NULL;
    int status = strata_registry_create(&r, &none, &err);
    if (status == STRATA_OK)
        status = strata_registry_add(r, c->o->file, c->o->module, &err);
    if (status != STRATA_OK) {
        refuse(c, err.message);
    } else {
        const struct module *m = registry_module_at(r, registry_modules(r) - 1);
        for (size_t i = 0; i < m->tables.n_layers; i++)
            check_extension(c, &m->tables.layers[i].layer);
        list_layers(c, m);
        c->report->runs = 1;
    }
    enter(c, "");
    strata_registry_destroy(r);
}

void check_load(struct check_child *c)
{
    if (c->o->module) {
        check_given(c);
        return;
    }
    strata_error err = {0};
    struct module *m = NULL;
    int status = module_open(&m, c->o->file, 0, &err);
    if (status == STRATA_OK && !c->o->allow_untrusted)
        status = trust_check(m->resolved, true, &err);
    if (status != STRATA_OK) {
        refuse(c, err.message);
        module_free(m);
        return;
    }
    struct opening o = {.child = c, .at = now_ms()};
    enter(c, "constructor");
    status = module_load(m, opened, &o, &err);
    const double ms = now_ms() - o.at;
    if (status == STRATA_OK)
        check_loaded(c, m, ms);
    else
        refuse(c, err.message);
    enter(c, "");
    module_free(m);
}
