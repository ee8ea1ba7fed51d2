//! File systems of our own: images on loop devices, overlays, bind mounts, FUSE. Each is taken away with its value.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Stdio;

use super::ground::{Stop, need, need_root, quietly};
use crate::tools::command;

/// Something mounted on a folder. Unmounts it when it goes.
pub(super) struct Mount {
    pub(super) folder: PathBuf,
}

impl Mount {
    /// Mounts something; what this machine cannot mount is left out.
    fn new(words: &[&str], folder: &Path) -> Result<Self, Stop> {
        need_root()?;
        fs::create_dir_all(folder)?;
        Self::with("mount", words, folder)
    }

    fn with(program: &str, words: &[&str], folder: &Path) -> Result<Self, Stop> {
        match quietly(program, words) {
            Ok(_) => Ok(Self { folder: folder.to_owned() }),
            Err(Stop::Broken(why) | Stop::LeftOut(why)) => {
                Err(Stop::LeftOut(format!("it cannot be mounted here: {why}")))
            }
        }
    }

    /// An empty file system of this kind (`ext4`, `xfs`, `btrfs`), in an image beside the folder.
    pub(super) fn image(kind: &str, options: &[&str], folder: &Path) -> Result<Self, Stop> {
        need_root()?;
        let package = match kind {
            "xfs" => "xfsprogs",
            "btrfs" => "btrfs-progs",
            _ => "e2fsprogs",
        };
        let make = format!("mkfs.{kind}");
        need(&make, package)?;
        let image = folder.with_extension("image");
        let size = if kind == "xfs" { 320 << 20 } else { 128 << 20 };
        File::create(&image)?.set_len(size)?;
        let place = image.to_string_lossy();
        quietly(&make, &[&["-q"], options, &[&place]].concat())?;
        let mounted = Self::new(&["-o", "loop", &place, &folder.to_string_lossy()], folder);
        // The loop device keeps the image as long as it is mounted.
        fs::remove_file(&image)?;
        mounted
    }

    /// A finished image, read-only.
    pub(super) fn read_only(image: &Path, folder: &Path) -> Result<Self, Stop> {
        let (image, place) = (image.to_string_lossy(), folder.to_string_lossy());
        Self::new(&["-o", "loop,ro", &image, &place], folder)
    }

    /// A finished image that can be written to.
    pub(super) fn loop_image(image: &Path, folder: &Path) -> Result<Self, Stop> {
        Self::new(&["-o", "loop", &image.to_string_lossy(), &folder.to_string_lossy()], folder)
    }

    pub(super) fn tmpfs(folder: &Path) -> Result<Self, Stop> {
        Self::new(&["-t", "tmpfs", "tmpfs", &folder.to_string_lossy()], folder)
    }

    /// Shows one folder or file at the place of another, which is there already.
    pub(super) fn bind(from: &Path, to: &Path) -> Result<Self, Stop> {
        need_root()?;
        Self::with("mount", &["--bind", &from.to_string_lossy(), &to.to_string_lossy()], to)
    }

    pub(super) fn overlay(lower: &Path, upper: Option<&Path>, folder: &Path) -> Result<Self, Stop> {
        let options = match upper {
            Some(upper) => {
                let (up, work) = (upper.join("up"), upper.join("work"));
                fs::create_dir_all(&up)?;
                fs::create_dir_all(&work)?;
                let (lower, up, work) = (lower.display(), up.display(), work.display());
                format!("lowerdir={lower},upperdir={up},workdir={work}")
            }
            // An overlay without an upper folder has two lower ones at least.
            None => {
                let empty = folder.with_extension("empty");
                fs::create_dir_all(&empty)?;
                format!("lowerdir={}:{}", lower.display(), empty.display())
            }
        };
        Self::new(&["-t", "overlay", "overlay", "-o", &options, &folder.to_string_lossy()], folder)
    }

    /// A FUSE file system, by the program that serves it and goes on in the background.
    pub(super) fn fuse(program: &str, words: &[&str], folder: &Path) -> Result<Self, Stop> {
        need_root()?;
        need(program, program)?;
        fs::create_dir_all(folder)?;
        let mut serve = command(program);
        // Whatever it keeps open of ours, we would wait for.
        serve
            .args(words)
            .arg(folder)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        match serve.status()?.success() {
            true => Ok(Self { folder: folder.to_owned() }),
            false => Err(Stop::LeftOut(format!("{program} cannot mount anything here"))),
        }
    }
}

impl Drop for Mount {
    fn drop(&mut self) {
        let folder = self.folder.to_string_lossy();
        // At once where nobody is in it, so that the loop device is free; else as soon as that is so.
        if quietly("umount", &[&folder]).is_err() {
            let _not_mounted = quietly("umount", &["-l", &folder]);
        }
    }
}
