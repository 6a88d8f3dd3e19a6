/* SPDX-License-Identifier: Apache-2.0
 *
 * One plugin file: what its note says, and once loaded, its validated tables.
 */
#ifndef REGISTRY_MODULE_H
#define REGISTRY_MODULE_H

#include "registry/descriptor.h"
#include "registry/note.h"

struct module {
    char *path;     /* as found or given */
    char *resolved; /* without symbolic links; what is loaded */
    struct note_result result;
    struct descriptor tables; /* empty until loaded */
    char *warning;            /* the note differs from the tables; NULL: it does not */
    bool named;               /* asked for by the user, not found in a folder */
    bool given;               /* the application's tables: there is no file */
    bool in_default_folder;
    bool loaded, duplicate, rejected;
    bool lacks_memory; /* its entry said so when it was tried last */
    bool tried;  /* in another process, or known to be good */
    char *fault; /* how it ended that process; NULL: it did not */
};

/* Read and judge the note, without running anything. EMODULE with the reason (no path),
 * ENOMEM or EIO where memory, descriptors or a device failed and the file may be good;
 * out->result.note is then as far as it was understood. *out is freed by the caller in
 * any case. */
int module_open(struct module **out, const char *path, uint32_t driver,
                strata_error *err);
/* dlopen, call the entry, validate. The file must still be the one whose note was read.
 * ENOMEM and EIO as of module_open.
 * Never unloads: a failed module stays mapped. `opened`, which may be NULL, is called
 * once the constructors have run. */
int module_load(struct module *m, void (*opened)(void *user), void *user,
                strata_error *err);
void module_free(struct module *m);

/* Whether the note says that the module defines a layer of this bare name. */
bool module_defines(const struct module *m, const char *name);
/* Whether the note says that it extends "ns::Name". */
bool module_extends(const struct module *m, const char *full);

#endif /* REGISTRY_MODULE_H */
