import CLinux
import Glibc

/// A pressure file of the kernel's, or anything that reads like one.
package struct PressureFile: Hashable, Sendable {
    /// Its name.
    package let path: String

    /// A file, which need not exist.
    package init(path: String) {
        self.path = path
    }

    /// The machine's own, and that of the process's control group (version 2) where the kernel keeps one.
    package static var ofSystem: [PressureFile] {
        var files = [PressureFile(path: "/proc/pressure/memory")]
        let membership = bytes(of: "/proc/self/cgroup") ?? []
        if let group = group(in: membership) {
            // Mounted alone, or beside the groups of version 1.
            for root in ["/sys/fs/cgroup", "/sys/fs/cgroup/unified"] {
                let file = PressureFile(path: "\(root)\(group == "/" ? "" : group)/memory.pressure")
                if file.read() != nil {
                    files.append(file)
                    break
                }
            }
        }
        return files
    }

    /// The process's control group of version 2 by the contents of `/proc/self/cgroup`: its line is `0::/path`.
    ///
    /// `nil` where there is none, or where it lies outside of what the process sees (`/../other`).
    package static func group(in membership: [UInt8]) -> String? {
        for line in membership.split(separator: UInt8(ascii: "\n")) where line.starts(with: "0::/".utf8) {
            let path = String(decoding: line.dropFirst(3), as: UTF8.self)
            return path.utf8.contains(0) || path.split(separator: "/").contains("..") ? nil : path
        }
        return nil
    }

    /// What it says now; `nil` where it cannot be read, or is no such file.
    package func read() -> MemoryStall? {
        guard let bytes = PressureFile.bytes(of: path) else { return nil }
        return try? MemoryStall(parsing: bytes)
    }

    /// The first 4 KiB of a file: such files have some hundred bytes, and others are none of ours.
    private static func bytes(of path: String) -> [UInt8]? {
        let descriptor = unsafe Glibc.open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK)
        guard descriptor >= 0 else { return nil }
        defer { close(descriptor) }
        var bytes: [UInt8] = []
        while bytes.count < 4096 {
            let (count, code) = Socket.retrying {
                let room = 4096 - bytes.count
                return unsafe withUnsafeTemporaryAllocation(byteCount: room, alignment: 1) { buffer in
                    let count = unsafe Glibc.read(descriptor, buffer.baseAddress, room)
                    if count > 0 { unsafe bytes.append(contentsOf: buffer.prefix(count)) }
                    return count
                }
            }
            guard code == 0 else { return nil }
            if count <= 0 { break }
        }
        return bytes
    }
}
