import MartletCore
import MartletStreams

/// A stream of events that is parsed in the simplest way: as a whole, line by line, without limits.
struct PlainEventStream {
    /// The lines that end with LF or CR LF, and the rest if there is any.
    private(set) var lines: [[UInt8]] = []
    /// The parsed events in order.
    private(set) var events: [ServerSentEvent] = []

    init(_ input: [UInt8]) {
        let bytes = input.starts(with: [0xEF, 0xBB, 0xBF]) ? Array(input.dropFirst(3)) : input
        lines = bytes.split(separator: 0x0A, omittingEmptySubsequences: false).map(Array.init)
        let rest = lines.removeLast()
        lines = lines.map { $0.last == 0x0D ? $0.dropLast() : $0 }
        if !rest.isEmpty { lines.append(rest) }

        var unified: [UInt8] = []
        for (index, byte) in bytes.enumerated() {
            if byte == 0x0A, index > 0, bytes[index - 1] == 0x0D { continue }
            unified.append(byte == 0x0D ? 0x0A : byte)
        }
        var data: [[UInt8]] = []
        var type: [UInt8] = []
        var id: [UInt8] = []
        let complete = unified.split(separator: 0x0A, omittingEmptySubsequences: false).dropLast()
        for line in complete {
            guard !line.isEmpty else {
                let joined = Array(data.joined(separator: [0x0A]))
                if !data.isEmpty {
                    events.append(
                        ServerSentEvent(
                            event: type.isEmpty ? "message" : text(type), data: text(joined),
                            id: text(id)))
                }
                (data, type) = ([], [])
                continue
            }
            let parts = line.split(separator: 0x3A, maxSplits: 1, omittingEmptySubsequences: false)
            var value = parts.count > 1 ? Array(parts[1]) : []
            if value.first == 0x20 { value.removeFirst() }
            switch text(Array(parts[0])) {
            case "data": data.append(value)
            case "event": type = value
            case "id" where !value.contains(0): id = value
            default: break
            }
        }
    }

    private func text(_ bytes: [UInt8]) -> String { String(decoding: bytes, as: UTF8.self) }
}
