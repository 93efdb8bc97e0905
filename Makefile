# A thin front: Meson builds.  `make` builds build/millrace; `make test` and `make study` also install
# what is missing on Debian.
BUILD ?= build

.PHONY: all deps test study install clean

all: $(BUILD)/build.ninja
	@ninja -C $(BUILD)

# Configured again when packages have come or gone since.
$(BUILD)/build.ninja: $(wildcard /var/lib/dpkg/status)
	meson setup $(if $(wildcard $@),--reconfigure) $(BUILD)

deps:
	@tools/install-deps build test

test: deps
	@$(MAKE) --no-print-directory all
	meson test -C $(BUILD) --print-errorlogs

# All experiments on this machine, in about ten minutes; prints the headline and the report's path.
# An interrupted one goes on where it stopped.  STUDY='--data DIR --out DIR2' for your own images.
study:
	@tools/install-deps build
	@$(MAKE) --no-print-directory all
	@$(BUILD)/millrace study $(STUDY)

install: all
	meson install -C $(BUILD)

clean:
	rm -rf $(BUILD)
