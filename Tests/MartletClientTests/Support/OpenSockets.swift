import Glibc
import Martlet

/// The sockets of this machine that lead to a port of loopback and still have a descriptor: those of a test's own client,
/// since no other test has the port.
enum OpenSockets {
    /// How many there are; -1 when the kernel does not tell. Those that come and go meanwhile may be counted or not.
    static func count(toPort port: Int) -> Int {
        inodes(toPort: port)?.count ?? -1
    }

    /// How many there were at one moment, at least; -1 when the kernel does not tell.
    ///
    /// The table is walked through while sockets come and go: one that closes behind the walk and the one that takes its
    /// place before it are both seen. Those that two walks see, one after the other, were all there between the two.
    static func simultaneousCount(toPort port: Int) -> Int {
        guard let first = inodes(toPort: port), let second = inodes(toPort: port) else { return -1 }
        return Set(first).intersection(second).count
    }

    private static func inodes(toPort port: Int) -> [Substring]? {
        guard let table else { return nil }
        let digits = String(port, radix: 16, uppercase: true)
        let sought = Array((":" + String(repeating: "0", count: 4 - digits.utf8.count) + digits + " ").utf8)
        // The table is long where connections were many, and nearly all of it is about others.
        return lines(of: table, with: sought).compactMap { line in
            let columns = line.split(separator: " ", omittingEmptySubsequences: true)
            guard columns.count > 9, columns[2].utf8.suffix(5).elementsEqual(sought.dropLast()) else {
                return nil
            }
            // The inode is 0 once the last descriptor is closed, whatever the connection still goes through.
            return columns[9] == "0" ? nil : columns[9]
        }
    }

    /// The lines in which some bytes occur.
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

    /// Where some bytes begin in a text without a NUL but for the last.
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

    /// The kernel's table of TCP sockets, and a NUL.
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
