# A thin front: Meson builds.  `make` builds build/millrace; `make test` and `make study` also install
# what is missing on Debian.
BUILD ?= build

.PHONY: all deps test study install clean

all: $(BUILD)/build.ninja
	@ninja -C $(BUILD)

$(BUILD)/build.ninja:
	meson setup $(BUILD)

deps:
	@tools/install-deps

test: deps
	@$(MAKE) --no-print-directory all
	meson test -C $(BUILD) --print-errorlogs

# Every experiment on data made here, then the report; what is through is not run again.
study: deps
	@$(MAKE) --no-print-directory all
	$(BUILD)/millrace study

install: all
	meson install -C $(BUILD)

clean:
	rm -rf $(BUILD)
