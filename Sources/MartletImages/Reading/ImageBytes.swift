/// The bytes of a file as they come: what was fed and not yet taken, and where that is in the file.
struct ImageBytes: Sendable {
    private var buffer: [UInt8] = []
    private var index = 0
    /// How many bytes are still to be dropped as they come.
    private var skipping = 0
    /// Where in the file the next byte is.
    private(set) var offset = 0

    /// How many bytes are there.
    var count: Int { buffer.count - index }

    /// Adds bytes; those that are skipped are not kept.
    mutating func feed(_ bytes: some Collection<UInt8>) {
        var fresh = bytes[...]
        if skipping > 0 {
            let dropped = min(skipping, fresh.count)
            fresh = fresh.dropFirst(dropped)
            skipping -= dropped
            offset += dropped
        }
        if index > buffer.count / 2 {
            buffer.removeFirst(index)
            index = 0
        }
        buffer.append(contentsOf: fresh)
    }

    /// The next bytes; nil when there are not that many yet.
    func peek(_ wanted: Int) -> ArraySlice<UInt8>? {
        guard wanted <= count else { return nil }
        return buffer[index..<index + wanted]
    }

    /// The byte at a distance; nil when it is not there yet.
    func byte(_ distance: Int = 0) -> UInt8? { distance < count ? buffer[index + distance] : nil }

    /// Takes the next bytes; nil, and nothing is taken, when there are not that many yet.
    mutating func take(_ wanted: Int) -> ArraySlice<UInt8>? {
        guard let bytes = peek(wanted) else { return nil }
        index += wanted
        offset += wanted
        return bytes
    }

    /// Drops bytes, those too that are not there yet.
    mutating func skip(_ number: Int) {
        let dropped = min(number, count)
        index += dropped
        offset += dropped
        skipping = number - dropped
    }

    /// Whether bytes are being dropped that are not there yet.
    var isSkipping: Bool { skipping > 0 }

    /// Drops bytes up to one that is `0xFF`; false when there is none yet.
    mutating func skipToMarker() -> Bool {
        let end = buffer.count
        var reached = index
        while reached < end, buffer[reached] != 0xFF { reached += 1 }
        offset += reached - index
        index = reached
        return reached < end
    }
}

extension ArraySlice<UInt8> {
    /// The number that bytes at a place make, the high one first. There must be that many.
    func big(_ place: Int, _ width: Int) -> Int {
        self[(startIndex + place)..<(startIndex + place + width)].reduce(0) { $0 << 8 | Int($1) }
    }

    /// The number that bytes at a place make, the low one first. There must be that many.
    func little(_ place: Int, _ width: Int) -> Int {
        self[(startIndex + place)..<(startIndex + place + width)].reversed().reduce(0) { $0 << 8 | Int($1) }
    }
}
