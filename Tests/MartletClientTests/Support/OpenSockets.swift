import Glibc
import Martlet

/// The local sockets that are connected to a loopback port and still have a descriptor. They belong to the test's own
/// client, since no other test uses the port.
enum OpenSockets {
    /// Returns the number of sockets; -1 if the kernel does not report it. Sockets that open or close during the count
    /// may or may not be included.
    static func count(toPort port: Int) -> Int {
        inodes(toPort: port)?.count ?? -1
    }

    /// Returns a lower bound of the sockets that existed at one moment; -1 if the kernel does not report it.
    ///
    /// Sockets open and close while the table is read, so that one read may contain a closed socket and its
    /// replacement. Sockets in two consecutive reads all existed at the moment between the reads.
    static func simultaneousCount(toPort port: Int) -> Int {
        guard let first = inodes(toPort: port), let second = inodes(toPort: port) else { return -1 }
        return Set(first).intersection(second).count
    }

    private static func inodes(toPort port: Int) -> [Substring]? {
        guard let table else { return nil }
        let digits = String(port, radix: 16, uppercase: true)
        let sought = Array((":" + String(repeating: "0", count: 4 - digits.utf8.count) + digits + " ").utf8)
        // The table is long if there were many connections, and nearly all of its lines belong to other ports.
        return lines(of: table, with: sought).compactMap { line in
            let columns = line.split(separator: " ", omittingEmptySubsequences: true)
            guard columns.count > 9, columns[2].utf8.suffix(5).elementsEqual(sought.dropLast()) else {
                return nil
            }
            // The inode is 0 after the last descriptor is closed, in any state of the connection.
            return columns[9] == "0" ? nil : columns[9]
        }
    }

    /// Returns the lines that contain some bytes.
    private static func lines(of table: [UInt8], with sought: [UInt8]) -> [Substring] {
        var lines: [Substring] = []
        var start = 0
        while let place = offset(of: sought, in: table, from: start) {
            let begin = table[..<place].lastIndex(of: 10).map { $0 + 1 } ?? 0
            let end = table[place...].firstIndex(of: 10) ?? table.count
            lines.append(Substring(decoding: table[begin..<end], as: UTF8.self))
            start = end
        }
        return lines
    }

    /// Returns the offset of some bytes in a text that ends with its only NUL.
    private static func offset(of sought: [UInt8], in table: [UInt8], from start: Int) -> Int? {
        let sought = sought.map { CChar(bitPattern: $0) } + [0]
        return unsafe table.withUnsafeBytes { all -> Int? in
            guard start < all.count, let base = unsafe all.bindMemory(to: CChar.self).baseAddress else {
                return nil
            }
            let found = unsafe strstr(base + start, sought)
            return unsafe found.map { unsafe UnsafePointer($0) - base }
        }
    }

    /// The kernel's table of TCP sockets, followed by a NUL.
    private static var table: [UInt8]? {
        do {
            let file = try FileDescriptor.open(FilePath("/proc/self/net/tcp"), .readOnly)
            return try file.closeAfter {
                var text: [UInt8] = []
                var piece = [UInt8](repeating: 0, count: 1 << 16)
                while true {
                    let count = unsafe try piece.withUnsafeMutableBytes { unsafe try file.read(into: $0) }
                    if count == 0 { return text + [0] }
                    text += piece.prefix(count)
                }
            }
        } catch {
            return nil
        }
    }
}
