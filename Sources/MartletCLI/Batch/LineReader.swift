import MartletTransport
import SystemPackage

/// Lines of standard input, one after the other, each within a limit.
actor LineReader {
    /// A line, or that it was too long and was skipped.
    enum Line: Sendable {
        case bytes([UInt8])
        case tooLong
    }

    private static let workers = BlockingWorkers(threadLimit: 1)
    private let limit: Int
    private var buffer: [UInt8] = []
    /// Where the next line begins.
    private var start = 0
    /// Up to where no line end was found.
    private var searched = 0
    private var isSkipping = false
    private var isEnded = false

    /// Lines of at most so many bytes.
    init(limit: Int) {
        self.limit = limit
    }

    /// The next line without its end; `nil` after the last. Empty lines are passed over.
    func next() async throws -> Line? {
        while true {
            if let end = buffer[searched...].firstIndex(of: 10) {
                let line = buffer[start..<end]
                start = end + 1
                searched = start
                if isSkipping {
                    isSkipping = false
                    return .tooLong
                }
                let content = line.last == 13 ? line.dropLast() : line
                if !content.isEmpty { return .bytes(Array(content)) }
                continue
            }
            searched = buffer.count
            if isEnded { return last() }
            if buffer.count - start > limit {
                isSkipping = true
                start = buffer.count
            }
            try await fill()
        }
    }

    private func last() -> Line? {
        let rest = Array(buffer[start...])
        start = buffer.count
        if isSkipping {
            isSkipping = false
            return .tooLong
        }
        return rest.isEmpty ? nil : .bytes(rest)
    }

    private func fill() async throws {
        buffer.removeFirst(start)
        searched -= start
        start = 0
        let result = await LineReader.workers.run {
            Result { try DescriptorReading.read(.standardInput, atMost: 256 * 1024) }
        }
        let piece = try result.get()
        if piece.isEmpty { isEnded = true } else { buffer += piece }
    }
}
