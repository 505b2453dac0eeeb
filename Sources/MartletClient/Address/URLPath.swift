/// Paths: percent-encoding and the removal of dot segments (RFC 3986 §5.2.4, WHATWG URL Standard).
enum URLPath {
    /// The path encoded, beginning with `/`, its `.` and `..` segments removed unless they are to be kept.
    ///
    /// `%2e` counts as a dot, as in the WHATWG URL Standard: servers decode it before they walk the path.
    static func normalized(_ raw: ArraySlice<UInt8>, keepingDots: Bool) -> String {
        let slash = UInt8(ascii: "/")
        var output: [UInt8] = []
        output.reserveCapacity(raw.count + 1)
        // Where each segment kept so far begins, at its slash.
        var starts: [Int] = []
        var rest = raw.first == slash ? raw.dropFirst() : raw
        while true {
            let end = rest.firstIndex(of: slash) ?? rest.endIndex
            let segment = rest[rest.startIndex..<end]
            let isLast = end == rest.endIndex
            switch keepingDots ? 0 : dots(segment) {
            case 0:
                starts.append(output.count)
                output.append(slash)
                PercentEncoding.append(segment, set: PercentEncoding.pathSet, to: &output)
            case 2:
                if let start = starts.popLast() { output.removeLast(output.count - start) }
                if isLast { output.append(slash) }
            default:
                if isLast { output.append(slash) }
            }
            if isLast { break }
            rest = rest[(end + 1)...]
        }
        return String(decoding: output, as: UTF8.self)
    }

    /// The path up to and including its last slash: what a relative path is appended to.
    static func directory(of path: String) -> [UInt8] {
        let bytes = Array(path.utf8)
        let end = bytes.lastIndex(of: UInt8(ascii: "/")).map { $0 + 1 } ?? 0
        return Array(bytes[..<end])
    }

    /// How many dots a segment consists of, if it is one or two and nothing else; else 0.
    private static func dots(_ segment: ArraySlice<UInt8>) -> Int {
        guard segment.count <= 6 else { return 0 }
        var count = 0
        var index = segment.startIndex
        while index < segment.endIndex {
            if segment[index] == UInt8(ascii: ".") {
                index += 1
            } else if segment[index] == UInt8(ascii: "%"),
                PercentEncoding.value(ofHexAt: index, in: segment) == UInt8(ascii: ".")
            {
                index += 3
            } else {
                return 0
            }
            count += 1
        }
        return count <= 2 ? count : 0
    }
}
