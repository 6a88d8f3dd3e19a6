# Silent rules say how far the build is: [37/412] NVCC kernels/delay.lo
#
# The total is what a dry run of the same goals would make, so it counts what is out of
# date. It is taken at the first such line: a make that finds nothing to do pays nothing.
# The makes that it then starts in its own folder go on from there.
ifneq ($(PROGRESS_FOLDER),$(abs_builddir))
PROGRESS_FOLDER := $(abs_builddir)
PROGRESS_DONE :=
PROGRESS_TOTAL :=
endif
PROGRESS_DONE := $(PROGRESS_DONE) # a word for each line
export PROGRESS_FOLDER PROGRESS_DONE PROGRESS_TOTAL

# Several makes of a dry run may show the same target. It has no part in this one's jobs.
progress_flags = '$(subst ','\'',$(filter-out -j% --jobserver%,$(MAKEFLAGS)))'
progress_count = $(shell MAKEFLAGS=$(progress_flags) \
	$(MAKE) -n --no-print-directory PROGRESS_COUNTS=yes $(MAKECMDGOALS) 2>/dev/null | \
	sed -n 's/^: progress \([^;]*\);.*/\1/p' | sort -u | wc -l)
progress_next = $(if $(PROGRESS_TOTAL),,$(eval PROGRESS_TOTAL := $(progress_count)))$(eval \
	PROGRESS_DONE += x)[$(words $(PROGRESS_DONE))/$(PROGRESS_TOTAL)]

ifdef PROGRESS_COUNTS
progress_line = : progress $(1) $@;
config.h: ; +@: # looked at again, where a dry run took it for new
else
progress_line = @echo "$(progress_next) $(1) $@";
endif

# Of every tag that prints a line, Automake's or ours: CC, CCLD, GEN, NVCC, ...
progress_tags := $(foreach v,$(filter am__v_%_0,$(.VARIABLES)),$(if \
	$(findstring @echo,$(value $(v))),$(patsubst am__v_%_0,%,$(v))))
$(foreach tag,$(progress_tags),$(eval am__v_$(tag)_0 = $$(call progress_line,$(tag))))
