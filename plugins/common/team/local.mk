# An archive, of which a plugin without parallel regions takes nothing. It lies behind a
# plugin's objects, as libtool puts flags of the linker there.
noinst_LIBRARIES += plugins/common/team/libteam.a
plugins_common_team_libteam_a_SOURCES = plugins/common/team/team.c \
	plugins/common/team/threads.h plugins/common/team/turn.h
plugins_common_team_libteam_a_CFLAGS = $(CFLAGS_FOR_PLUGINS) -fPIC
# The linker wraps by names, and link-time optimisation of this file would lose the name.
# Behind CFLAGS, which a packager may have put it in.
plugins/common/team/libteam_a-team.$(OBJEXT): override CFLAGS += -fno-lto
