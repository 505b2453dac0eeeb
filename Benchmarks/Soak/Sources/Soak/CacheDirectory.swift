import Glibc

/// A temporary directory for a cache, with its disk usage.
struct CacheDirectory: Sendable {
    let path: String

    /// Creates a directory in the system's temporary directory.
    init() throws {
        let parent = unsafe getenv("TMPDIR").map { unsafe String(cString: $0) } ?? "/tmp"
        var template = Array("\(parent)/martlet-soak-XXXXXX".utf8CString)
        let isMade = unsafe template.withUnsafeMutableBufferPointer { buffer in
            unsafe buffer.baseAddress.map { unsafe mkdtemp($0) != nil } ?? false
        }
        guard isMade else { throw SoakFailure("no directory in \(parent): errno \(errno)") }
        path = String(decoding: template.dropLast().map { UInt8(bitPattern: $0) }, as: UTF8.self)
    }

    /// Removes the directory and its files.
    func remove() {
        for name in names { unsafe unlink("\(path)/\(name)") }
        unsafe rmdir(path)
    }

    /// The file names in the directory.
    var names: [String] {
        guard let directory = unsafe opendir(path) else { return [] }
        defer { unsafe closedir(directory) }
        var names: [String] = []
        while let entry = unsafe readdir(directory) {
            let name = unsafe withUnsafePointer(to: &entry.pointee.d_name) { name in
                unsafe name.withMemoryRebound(to: CChar.self, capacity: 256) { unsafe String(cString: $0) }
            }
            if name != ".", name != ".." { names.append(name) }
        }
        return names
    }

    /// The allocated blocks of the directory and its files, in bytes. A file that is renamed during the scan counts
    /// once.
    var allocatedByteCount: Int {
        var status = stat()
        var seen: Set<UInt> = []
        var sum = 0
        for path in [path] + names.map({ "\(path)/\($0)" }) {
            guard unsafe lstat(path, &status) == 0, seen.insert(UInt(status.st_ino)).inserted else {
                continue
            }
            sum += Int(status.st_blocks) * 512
        }
        return sum
    }

    /// The files that a process left incomplete: unfinished writes, or bodies without an entry.
    var leftovers: [String] {
        let names = Set(names)
        return names.filter { name in
            let parts = name.split(separator: ".")
            if parts.count == 2, parts[0] == "new" { return true }
            return parts.count == 3 && !names.contains("\(parts[0]).\(parts[1])")
        }
    }
}
