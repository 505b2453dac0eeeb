extension OriginResponseBody {
    /// How much of a pattern or file is handled at once.
    private static let stepSize = 256 << 10

    /// Writes the body.
    func write(to writer: OriginBodyWriter) async throws {
        switch content {
        case .bytes(let bytes):
            try await writer.append(bytes)
        case .pattern(let offset, let count):
            var done: UInt64 = 0
            while done < count {
                let step = Int(min(count - done, UInt64(TestPattern.stretchLimit)))
                try await writer.append(TestPattern.bytes(from: offset + done, count: step))
                done += UInt64(step)
            }
        case .file(let path, let range):
            let file = try await ServedFile.open(path)
            do {
                var offset = range.lowerBound
                while offset < range.upperBound {
                    let count = Int(min(range.upperBound - offset, UInt64(OriginResponseBody.stepSize)))
                    let bytes = try await file.read(at: offset, count: count)
                    if bytes.isEmpty { break }
                    try await writer.append(bytes)
                    offset += UInt64(bytes.count)
                }
            } catch {
                await file.close()
                throw error
            }
            await file.close()
        case .stream(_, let body):
            try await body(writer)
        }
    }
}
