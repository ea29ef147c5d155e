// SPDX-License-Identifier: Apache-2.0

// Command sif wraps one squashfs file system into a Singularity Image Format file, the same bytes for the same input.
// It follows github.com/sylabs/sif, whose deterministic mode replaces the random identity and the wall clock;
// `apptainer build` before 1.5 cannot do that, and needs apptainer. It makes no squashfs and signs nothing.
package main

import (
	"flag"
	"fmt"
	"os"
	"runtime"
	"time"

	"github.com/google/uuid"
	"github.com/sylabs/sif/v2/pkg/sif"
)

// The kernel runs an executable SIF through this line (the value that apptainer writes).
const launchScript = "#!/usr/bin/env run-singularity\n"

type request struct {
	squashfs, metadata, identity, output string
	epoch                                int64
}

func main() {
	var asked request
	flag.StringVar(&asked.squashfs, "squashfs", "", "file system to wrap")
	flag.StringVar(&asked.metadata, "metadata", "", "JSON that `apptainer inspect` prints")
	flag.StringVar(&asked.identity, "identity", "", "what the image is made of (a digest); its UUID derives from it")
	flag.Int64Var(&asked.epoch, "epoch", 0, "creation time, seconds since 1970")
	flag.StringVar(&asked.output, "output", "", "SIF file to write")
	flag.Parse()
	if asked.squashfs == "" || asked.metadata == "" || asked.identity == "" || asked.output == "" {
		fmt.Fprintln(os.Stderr, "sif: -squashfs, -metadata, -identity and -output are all needed")
		os.Exit(2)
	}
	if err := assemble(asked); err != nil {
		fmt.Fprintln(os.Stderr, "sif:", err)
		os.Exit(1)
	}
}

// assemble writes the image under a provisional name and renames it, so that a half-written SIF is never seen.
func assemble(asked request) error {
	descriptors, closeInputs, err := describe(asked)
	if err != nil {
		return err
	}
	defer closeInputs()
	partial := asked.output + ".partial"
	defer os.Remove(partial)
	image, err := sif.CreateContainerAtPath(partial,
		sif.OptCreateDeterministic(),
		sif.OptCreateWithID(uuid.NewSHA1(uuid.NameSpaceOID, []byte(asked.identity)).String()),
		sif.OptCreateWithTime(time.Unix(asked.epoch, 0)),
		sif.OptCreateWithLaunchScript(launchScript),
		sif.OptCreateWithDescriptors(descriptors...))
	if err != nil {
		return fmt.Errorf("write %s: %w", partial, err)
	}
	if err := image.UnloadContainer(); err != nil {
		return fmt.Errorf("close %s: %w", partial, err)
	}
	return os.Rename(partial, asked.output)
}

// describe lists the image's two objects: the file system that is executed, and the metadata that is inspected.
func describe(asked request) ([]sif.DescriptorInput, func(), error) {
	fileSystem, err := os.Open(asked.squashfs)
	if err != nil {
		return nil, nil, err
	}
	metadata, err := os.Open(asked.metadata)
	if err != nil {
		fileSystem.Close()
		return nil, nil, err
	}
	closeInputs := func() {
		fileSystem.Close()
		metadata.Close()
	}
	partition, err := sif.NewDescriptorInput(sif.DataPartition, fileSystem,
		sif.OptObjectName("rootfs.squashfs"),
		sif.OptPartitionMetadata(sif.FsSquash, sif.PartPrimSys, runtime.GOARCH))
	if err != nil {
		closeInputs()
		return nil, nil, err
	}
	inspect, err := sif.NewDescriptorInput(sif.DataGenericJSON, metadata,
		sif.OptObjectName("inspect-metadata.json"))
	if err != nil {
		closeInputs()
		return nil, nil, err
	}
	return []sif.DescriptorInput{partition, inspect}, closeInputs, nil
}
