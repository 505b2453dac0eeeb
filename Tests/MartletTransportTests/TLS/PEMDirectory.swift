import Glibc
import Testing

/// A directory for one test, which the test removes.
final class PEMDirectory {
    let path: String
    private var files: [String] = []

    init() {
        path = "/tmp/martlet-roots-\(getpid())-\(UInt64.random(in: 0 ... .max))"
        unsafe mkdir(path, 0o700)
    }

    /// Removes the directory and its files.
    func remove() {
        for file in files { unsafe unlink(file) }
        unsafe rmdir(path)
    }

    func write(_ name: String, _ text: String) -> String {
        let file = "\(path)/\(name)"
        files.append(file)
        let descriptor = unsafe open(file, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0o600)
        defer { close(descriptor) }
        let bytes = Array(text.utf8)
        #expect(unsafe Glibc.write(descriptor, bytes, bytes.count) == bytes.count)
        return file
    }
}
