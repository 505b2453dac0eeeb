import MartletWire
import Testing

/// Compares ``HeadParser`` with ``ReferenceHeadParser``: the same head, or the same error at the same byte, after the
/// same number of bytes, for each split and alignment of the input.
@Suite("Heads, compared with a parser of single bytes")
struct HeadReferenceTests {
    @Test("Heads of random lines are parsed alike", arguments: 1...8)
    func randomLines(seed: UInt64) {
        var generator = SeededGenerator(state: seed)
        for _ in 0..<25 {
            let text =
                "HTTP/1.1 200 OK\r\n"
                + (0..<Int.random(in: 0...4, using: &generator)).map { _ in
                    HeadReferenceTests.line(&generator)
                }.joined() + "\r\n"
            var bytes = Array(text.utf8)
            for _ in 0..<Int.random(in: 0...2, using: &generator) { HeadReferenceTests.damage(&bytes, &generator) }
            compare(bytes, limits: HeadReferenceTests.limits(&generator), "seed \(seed)")
        }
    }

    @Test("A significant byte at each position of a head is parsed alike", arguments: HeadReferenceTests.significant)
    func eachPosition(byte: UInt8) {
        let head = Array("HTTP/1.1 200 OK\r\nContent-Length: 12\r\nX: abcdefghijklmnopq\r\n\r\nbody".utf8)
        for index in head.indices {
            var replaced = head
            replaced[index] = byte
            compareWhole(replaced)
            compareWhole(head[..<index] + [byte] + head[index...])
        }
    }

    @Test("Names and values of each length are parsed alike", arguments: 0...20)
    func eachLength(nameLength: Int) {
        for valueLength in 0...20 {
            let name = String(repeating: "n", count: nameLength)
            let value = String(repeating: "v", count: valueLength)
            for line in ["\(name):\(value)", "\(name): \t\(value) ", "\(name)"] {
                compareWhole(Array("HTTP/1.1 200 OK\r\n\(line)\r\n\r\n".utf8))
            }
        }
    }

    @Test("Each limit is reached at the same byte", arguments: 0...70)
    func limits(limit: Int) {
        let head = Array("HTTP/1.1 200 OK\r\nAccept-Ranges: bytes\r\nVary: Accept-Encoding\r\n\r\n".utf8)
        for path in [\WireLimits.headByteLimit, \.lineByteLimit, \.lineCountLimit] {
            var limits = WireLimits.default
            limits[keyPath: path] = limit
            compare(head, limits: limits, "limit")
        }
    }

    // MARK: Comparing

    /// Compares the outcomes for all splits into two parts, for single bytes, and for eight alignments.
    private func compare(_ bytes: [UInt8], limits: WireLimits, _ comment: String) {
        let outcomes = (0...bytes.count).map { ReferenceHeadParser.outcome(Array(bytes[..<$0]), limits: limits) }
        let ends = [(0...bytes.count).map { $0 }] + bytes.indices.map { [$0, bytes.count] }
        for (number, ends) in ends.enumerated() {
            var parser = HeadParser(limits: limits)
            // The bytes start at any alignment, and nothing follows the last one.
            let shift = number % 8
            for end in ends {
                let memory = [UInt8](repeating: 0x41, count: shift) + bytes[..<end]
                let outcome = HeadReferenceTests.outcome(&parser, memory.span.extracting(shift..<memory.count))
                #expect(outcome == outcomes[end], "\(comment), \(ends.count) parts, \(end) of \(bytes)")
                if outcome != .incomplete { break }
            }
        }
    }

    /// Compares the outcomes for bytes that arrive as a whole.
    private func compareWhole(_ bytes: [UInt8], sourceLocation: SourceLocation = #_sourceLocation) {
        var parser = HeadParser()
        let outcome = HeadReferenceTests.outcome(&parser, bytes.span)
        #expect(
            outcome == ReferenceHeadParser.outcome(bytes, limits: .default), "\(bytes)", sourceLocation: sourceLocation)
    }

    private static func outcome(_ parser: inout HeadParser, _ bytes: Span<UInt8>) -> ReferenceHeadParser.Outcome {
        do throws(WireError) {
            guard let head = try parser.parse(bytes) else { return .incomplete }
            // Look-ups use marks of the names, which have to match the names.
            for index in head.fields.indices {
                let name = head.fields.nameString(at: index)
                #expect(head.fields.firstIndex(of: name.uppercased(), from: index) == index)
                #expect(head.fields.firstIndex(of: name.lowercased(), from: index) == index)
            }
            #expect(!head.fields.contains("missing"))
            return .head(head, byteCount: parser.consumedByteCount)
        } catch { return .fault(error) }
    }

    // MARK: Random input

    static let significant = Array("\r\n :\t\0\u{1}\u{1F}!-@[`{~\u{7F}aZ09\"".utf8) + [0x80, 0x8D, 0x8A, 0xBA, 0xFF]

    private static func limits(_ generator: inout SeededGenerator) -> WireLimits {
        var limits = WireLimits.default
        limits.isStrict = Int.random(in: 0..<4, using: &generator) == 0
        limits.toleratesBareLineFeed = Int.random(in: 0..<3, using: &generator) > 0
        if Int.random(in: 0..<4, using: &generator) == 0 {
            limits.lineByteLimit = Int.random(in: 0..<60, using: &generator)
            limits.headByteLimit = Int.random(in: 0..<120, using: &generator)
            limits.lineCountLimit = Int.random(in: 0..<6, using: &generator)
        }
        return limits
    }

    private static func line(_ generator: inout SeededGenerator) -> String {
        func text(_ characters: String, _ count: ClosedRange<Int>) -> String {
            String(
                (0..<Int.random(in: count, using: &generator)).compactMap { _ in
                    characters.randomElement(using: &generator)
                })
        }
        let ending = Int.random(in: 0..<5, using: &generator) == 0 ? "\n" : "\r\n"
        if Int.random(in: 0..<6, using: &generator) == 0 { return text(" \t", 1...3) + text("fold ed", 0...9) + ending }
        return text("abcXYZ-", 1...18) + text("!~0", 0...1) + text("a-Z", 0...9) + ":" + text(" \t", 0...2)
            + text("abc ,;=\t\u{E9}", 0...24) + text(" \t", 0...2) + ending
    }

    private static func damage(_ bytes: inout [UInt8], _ generator: inout SeededGenerator) {
        let index = Int.random(in: 0..<bytes.count, using: &generator)
        let byte = significant.randomElement(using: &generator) ?? 0
        switch Int.random(in: 0...2, using: &generator) {
        case 0: bytes[index] = byte
        case 1: bytes.insert(byte, at: index)
        default: bytes.remove(at: index)
        }
    }
}
