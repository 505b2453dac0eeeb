import MartletCore

extension FuzzEntry {
    /// Multipart forms in memory: name, file name, one field and content of each part, separated by NULs.
    ///
    /// Control 0: the number from which boundaries are generated. Control 1: bit 0 adds file names, and bit 1 adds
    /// fields.
    ///
    /// A plain reader reads exactly the encoded parts. A boundary that occurs in a part is generated again. A rejected
    /// form has an invalid character.
    static let multipartBoundary = FuzzEntry("multipart-boundary") { (bytes) throws(FuzzFinding) in
        let input = FuzzInput(bytes)
        let hasFilenames = input.isSet(0, at: 1)
        let hasFields = input.isSet(1, at: 1)
        let pieces = input.payload.split(separator: 0, omittingEmptySubsequences: false).map(Array.init)
        let parts = stride(from: 0, to: pieces.count, by: 4).map {
            Array(pieces[$0..<min($0 + 4, pieces.count)])
        }
        var generator = CountingGenerator(state: UInt64(input[0]))
        let body = HTTPBody.multipart(using: &generator) { form in
            for part in parts {
                let texts = part.map { String(decoding: $0, as: UTF8.self) }
                let filename = hasFilenames && part.count > 1 ? texts[1] : nil
                let content = HTTPBody.bytes(part.count > 3 ? part[3] : [], contentType: nil)
                if hasFields, part.count > 2 {
                    form.part(texts[0], content, filename: filename, headers: ["X-Own": texts[2]])
                } else {
                    form.part(texts[0], content, filename: filename)
                }
            }
        }
        let isRejected = parts.contains { part in
            isControlled(part[0], allowing: [0x0A, 0x0D])
                || hasFilenames && part.count > 1 && isControlled(part[1], allowing: [0x0A, 0x0D])
                || hasFields && part.count > 2 && isControlled(part[2], allowing: [])
        }
        switch body.bytesInMemory {
        case .failure(let error): return try require(isRejected, "\(error), though nothing was wrong")
        case .success(let written):
            try require(!isRejected, "a control character was taken")
            try check(written, body.contentType, contents: parts.map { $0.count > 3 ? $0[3] : [] })
        case nil: try require(written(parts) > 64 * 1024, "parts in memory are read as a stream")
        }
    }

    private static func written(_ parts: [[[UInt8]]]) -> Int { parts.joined().reduce(0) { $0 + $1.count } }

    private static func isControlled(_ bytes: [UInt8], allowing: [UInt8]) -> Bool {
        bytes.contains { ($0 < 0x20 && $0 != 9 || $0 == 0x7F) && !allowing.contains($0) }
    }

    /// Splits the form at every line that begins with its boundary, and compares the contents.
    private static func check(
        _ bytes: [UInt8], _ type: String?, contents: [[UInt8]]
    ) throws(FuzzFinding) {
        let prefix = "multipart/form-data; boundary="
        guard let type, type.hasPrefix(prefix) else { throw FuzzFinding("the type is \(type ?? "none")") }
        let mark = Array("--\(type.dropFirst(prefix.count))".utf8)
        try require(mark.count <= 72, "the boundary has \(mark.count - 2) bytes")
        let marks = bytes.indices.filter { bytes[$0] == mark[0] && bytes[$0...].starts(with: mark) }
        try require(marks.count == contents.count + 1, "\(marks.count) marks for \(contents.count) parts")
        try require(marks.first == 0, "something stands before the first part")
        let end = Array("--\r\n".utf8)
        try require(
            bytes[(marks[marks.count - 1] + mark.count)...].elementsEqual(end), "the end is another one")
        for (index, content) in contents.enumerated() {
            let part = bytes[(marks[index] + mark.count)..<marks[index + 1]]
            try require(
                part.starts(with: [13, 10]) && part.suffix(2) == [13, 10], "a part is not on lines of its own"
            )
            let empty: [UInt8] = [13, 10, 13, 10]
            guard let head = part.indices.first(where: { part[$0...].starts(with: empty) }) else {
                throw FuzzFinding("a part has no head")
            }
            try require(
                part[(head + 4)...].dropLast(2).elementsEqual(content), "part \(index) has another content")
            let lines = part[(part.startIndex + 2)..<head].split(
                separator: 10, omittingEmptySubsequences: false)
            try require(lines.count <= 2, "the head of part \(index) has \(lines.count) lines")
            try require(lines.allSatisfy { !$0.dropLast().contains(13) }, "a CR stands within a line")
            try require(lines[0].filter { $0 == 0x22 }.count % 2 == 0, "a quote is open")
        }
    }
}

/// A generator of numbers that follow from the first.
private struct CountingGenerator: RandomNumberGenerator {
    var state: UInt64

    mutating func next() -> UInt64 {
        state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
        return state
    }
}
