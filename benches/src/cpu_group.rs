//! A control group that limits the processor time of a function's process.
//!
//! Lambda gives a function the whole processor while it initializes, and a share that is
//! proportional to its memory from then on. A process is therefore started in a group without a
//! limit, which gets its quota once the process asks for its first event.

use std::{
    fs, io,
    path::{Path, PathBuf},
    sync::atomic::{AtomicUsize, Ordering},
    thread,
    time::Duration,
};

/// The length of the periods to which a quota applies, as on Lambda.
pub(crate) const PERIOD: Duration = Duration::from_millis(20);

/// The memory with which a function has one whole processor.
const ONE_PROCESSOR: u32 = 1769;

/// The share of a processor that a function with this many megabytes of memory has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Share {
    pub(crate) megabytes: u32,
}

impl Share {
    /// The processor time in each period; the kernel requires at least a millisecond.
    fn quota(self) -> Duration {
        let quota = PERIOD * self.megabytes / ONE_PROCESSOR;
        quota.max(Duration::from_millis(1))
    }
}

/// The two interfaces of the kernel to the `cpu` controller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Version {
    V1,
    V2,
}

/// Where groups can be created, and the group in which this process started.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Hierarchy {
    version: Version,
    root: PathBuf,
    home: PathBuf,
}

impl Hierarchy {
    /// Finds the hierarchy that has the `cpu` controller, and tries a quota there.
    pub(crate) fn find() -> io::Result<Self> {
        let mounts = fs::read_to_string("/proc/self/mounts")?;
        let groups = fs::read_to_string("/proc/self/cgroup")?;
        let has_cpu = |root: &Path| {
            let controllers = fs::read_to_string(root.join("cgroup.controllers"));
            controllers.is_ok_and(|names| names.split_whitespace().any(|name| name == "cpu"))
        };
        let hierarchy = Self::parse(&mounts, &groups, has_cpu)
            .ok_or_else(|| io::Error::other("no control groups with the cpu controller"))?;
        let share = Share { megabytes: 128 };
        CpuGroup::enter(&hierarchy, share)?.limit()?;
        Ok(hierarchy)
    }

    fn parse(mounts: &str, groups: &str, has_cpu: impl Fn(&Path) -> bool) -> Option<Self> {
        let mounts = mounts.lines().filter_map(|line| {
            let mut fields = line.split(' ').skip(1);
            Some((Path::new(fields.next()?), fields.next()?, fields.next()?))
        });
        let of = |version, root: &Path, home: &str| Self {
            version,
            root: root.to_owned(),
            home: root.join(home.trim_start_matches('/')),
        };
        let mut v1 = None;
        for (root, kind, options) in mounts {
            if kind == "cgroup2" && has_cpu(root) {
                let home = groups.lines().find_map(|line| line.strip_prefix("0::"))?;
                return Some(of(Version::V2, root, home));
            }
            if kind == "cgroup" && options.split(',').any(|option| option == "cpu") {
                let home = groups.lines().find_map(|line| {
                    let (names, path) = line.split_once(':')?.1.split_once(':')?;
                    names.split(',').any(|name| name == "cpu").then_some(path)
                });
                v1 = home.map(|home| of(Version::V1, root, home));
            }
        }
        v1
    }
}

/// A group; dropping it removes it, which requires that its processes have ended.
pub(crate) struct CpuGroup {
    folder: PathBuf,
    version: Version,
    /// The group of this process before it entered; none after it has left again.
    home: Option<PathBuf>,
    share: Share,
}

impl CpuGroup {
    /// Creates a group without a quota and moves this process into it, so that a child is in it
    /// from its start.
    pub(crate) fn enter(hierarchy: &Hierarchy, share: Share) -> io::Result<Self> {
        static CREATED: AtomicUsize = AtomicUsize::new(0);
        let number = CREATED.fetch_add(1, Ordering::Relaxed);
        let name = format!("benches-{}-{number}", std::process::id());
        let folder = hierarchy.root.join(name);
        fs::create_dir(&folder)?;
        let group = Self {
            folder,
            version: hierarchy.version,
            home: Some(hierarchy.home.clone()),
            share,
        };
        join(&group.folder)?;
        Ok(group)
    }

    /// Moves this process back to where it was, and limits the processes that remain.
    pub(crate) fn limit(&mut self) -> io::Result<()> {
        self.leave()?;
        let (period, quota) = (PERIOD.as_micros(), self.share.quota().as_micros());
        let write = |file: &str, text: String| fs::write(self.folder.join(file), text);
        match self.version {
            Version::V1 => {
                write("cpu.cfs_period_us", period.to_string())?;
                write("cpu.cfs_quota_us", quota.to_string())
            }
            Version::V2 => write("cpu.max", format!("{quota} {period}")),
        }
    }

    /// The share of the periods so far in which the quota was used up.
    pub(crate) fn throttled(&self) -> io::Result<f64> {
        let text = fs::read_to_string(self.folder.join("cpu.stat"))?;
        let value = |name: &str| -> f64 {
            let value = text.lines().find_map(|line| line.strip_prefix(name));
            value.map_or(f64::NAN, |value| value.trim().parse().unwrap_or(f64::NAN))
        };
        let (throttled, periods) = (value("nr_throttled "), value("nr_periods "));
        // Without a period, nothing was throttled.
        Ok(throttled / periods.max(1.0))
    }

    fn leave(&mut self) -> io::Result<()> {
        self.home.take().map_or(Ok(()), |home| join(&home))
    }
}

impl Drop for CpuGroup {
    fn drop(&mut self) {
        let _ = self.leave();
        // The kernel may need a moment to remove the last process from the group.
        for _ in 0..100 {
            if fs::remove_dir(&self.folder).is_ok() {
                return;
            }
            thread::sleep(Duration::from_millis(10));
        }
        eprintln!("{} could not be removed", self.folder.display());
    }
}

/// Moves this process into a group.
fn join(folder: &Path) -> io::Result<()> {
    let name = folder.join("cgroup.procs");
    fs::write(&name, "0").map_err(|error| {
        let text = format!("{}: {error}", name.display());
        io::Error::new(error.kind(), text)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const BOTH: &str = "tmpfs /sys/fs/cgroup tmpfs rw,mode=755 0 0\n\
                        cgroup2 /sys/fs/cgroup/unified cgroup2 rw,relatime 0 0\n\
                        cgroup /sys/fs/cgroup/cpuset cgroup rw,cpuset 0 0\n\
                        cgroup /sys/fs/cgroup/cpu,cpuacct cgroup rw,cpu,cpuacct 0 0\n";
    const GROUPS: &str = "4:cpuset:/set\n3:cpu,cpuacct:/user/one\n0::/unified/two\n";

    #[test]
    fn a_share_is_proportional_to_the_memory() {
        let quota = |megabytes| Share { megabytes }.quota().as_micros();
        assert_eq!([1769, 512, 128].map(quota), [20_000, 5788, 1447]);
        assert_eq!(quota(10), 1000);
    }

    #[test]
    fn the_unified_hierarchy_is_preferred_if_it_has_the_controller() {
        let v1 = Hierarchy::parse(BOTH, GROUPS, |_| false).unwrap();
        assert_eq!(v1.version, Version::V1);
        assert_eq!(v1.root, Path::new("/sys/fs/cgroup/cpu,cpuacct"));
        assert_eq!(v1.home, Path::new("/sys/fs/cgroup/cpu,cpuacct/user/one"));
        let v2 = Hierarchy::parse(BOTH, GROUPS, |_| true).unwrap();
        assert_eq!(v2.version, Version::V2);
        assert_eq!(v2.home, Path::new("/sys/fs/cgroup/unified/unified/two"));
        let none = "cgroup2 /sys/fs/cgroup cgroup2 rw 0 0\n";
        assert_eq!(Hierarchy::parse(none, "0::/\n", |_| false), None);
    }
}
