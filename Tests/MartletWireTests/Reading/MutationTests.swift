import MartletWire
import Testing

@Suite("Damaged messages")
struct MutationTests {
    private static let messages = [
        "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nX-A: one\r\n two\r\n\r\nhello",
        "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n"
            + "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5;a=b\r\nhello\r\n0\r\nA: b\r\n\r\n",
        "HTTP/1.0 404 Not Found\nConnection: keep-alive\nContent-Length: 2, 2\n\nno",
    ]

    @Test("A damaged response is read in the same way however it is split", arguments: 1...4)
    func responses(seed: UInt64) {
        var generator = SeededGenerator(state: seed)
        for _ in 0..<400 {
            var bytes = Array(MutationTests.messages.randomElement(using: &generator)?.utf8 ?? "".utf8)
            damage(&bytes, &generator)
            let script = WireScript(
                bytes: bytes, ending: Bool.random(using: &generator) ? .cleanClose : .open)
            let whole = script.read([bytes])
            #expect(script.read(bytes.map { [$0] }) == whole, "seed \(seed): \(bytes)")
            #expect(script.read(pieces(bytes, &generator)) == whole, "seed \(seed): \(bytes)")
            #expect(script.read(bytes.map { [$0] }, direct: true) == whole, "seed \(seed): \(bytes)")
        }
    }

    @Test("No name, value or reason ever contains a line end or NUL", arguments: 5...6)
    func cleanFields(seed: UInt64) {
        var generator = SeededGenerator(state: seed)
        for _ in 0..<400 {
            var bytes = Array(MutationTests.messages.randomElement(using: &generator)?.utf8 ?? "".utf8)
            damage(&bytes, &generator)
            let outcome = WireScript(bytes: bytes).read([bytes])
            let heads = outcome.informational + [outcome.head].compactMap { $0 }
            for head in heads {
                let texts = head.fields.flatMap { [$0.name, $0.value] } + [head.reason]
                #expect(!texts.contains { $0.utf8.contains { $0 == 0 || $0 == 10 || $0 == 13 } })
                #expect((100...999).contains(head.status))
            }
        }
    }

    /// Changes, drops, duplicates or adds some bytes, mostly significant ones.
    private func damage(_ bytes: inout [UInt8], _ generator: inout SeededGenerator) {
        let telling = Array("\r\n :;,\t\0 0159aFx-+\u{7F}\u{FC}".utf8)
        for _ in 0..<Int.random(in: 0...3, using: &generator) {
            guard let index = bytes.indices.randomElement(using: &generator) else { return }
            switch Int.random(in: 0...3, using: &generator) {
            case 0: bytes[index] = telling.randomElement(using: &generator) ?? 0
            case 1: bytes.remove(at: index)
            case 2: bytes.insert(bytes[index], at: index)
            default: bytes.insert(telling.randomElement(using: &generator) ?? 0, at: index)
            }
        }
    }

    private func pieces(_ bytes: [UInt8], _ generator: inout SeededGenerator) -> [[UInt8]] {
        var pieces: [[UInt8]] = []
        var start = 0
        while start < bytes.count {
            let end = min(bytes.count, start + Int.random(in: 1...12, using: &generator))
            pieces.append(Array(bytes[start..<end]))
            start = end
        }
        return pieces
    }
}
