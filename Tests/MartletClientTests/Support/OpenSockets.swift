import Martlet

/// The sockets of this machine that lead to a port of loopback and still have a descriptor: those of a test's own client,
/// since no other test has the port.
enum OpenSockets {
    /// How many there are; -1 when the kernel does not tell.
    static func count(toPort port: Int) -> Int {
        guard let table else { return -1 }
        let digits = String(port, radix: 16, uppercase: true)
        let suffix = ":" + String(repeating: "0", count: 4 - digits.utf8.count) + digits
        return table.split(separator: "\n").dropFirst().count { line in
            let columns = line.split(separator: " ", omittingEmptySubsequences: true)
            // The inode is 0 once the last descriptor is closed, whatever the connection still goes through.
            return columns.count > 9 && columns[2].hasSuffix(suffix) && columns[9] != "0"
        }
    }

    /// The kernel's table of TCP sockets.
    private static var table: String? {
        do {
            let file = try FileDescriptor.open(FilePath("/proc/self/net/tcp"), .readOnly)
            return try file.closeAfter {
                var text: [UInt8] = []
                var piece = [UInt8](repeating: 0, count: 1 << 16)
                while true {
                    let count = unsafe try piece.withUnsafeMutableBytes { unsafe try file.read(into: $0) }
                    if count == 0 { return String(decoding: text, as: UTF8.self) }
                    text += piece.prefix(count)
                }
            }
        } catch {
            return nil
        }
    }
}
