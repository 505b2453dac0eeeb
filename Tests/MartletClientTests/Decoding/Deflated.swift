import CMartletZlib

/// Compressed test bodies, created with zlib.
enum Deflated {
    /// zlib's wrappers. The raw values are window bits for `deflateInit2`.
    enum Format: Int32, CaseIterable, Sendable {
        case zlib = 15
        case raw = -15
        case gzip = 31
    }

    /// Compresses the bytes in one call.
    static func bytes(_ input: [UInt8], as format: Format, level: Int32 = 6) -> [UInt8] {
        var stream = unsafe z_stream()
        guard unsafe martlet_deflate_init2(&stream, level, format.rawValue) == Z_OK else { return [] }
        defer { unsafe deflateEnd(&stream) }
        var input = input
        var output = [UInt8](repeating: 0, count: Int(unsafe deflateBound(&stream, uLong(input.count))))
        let capacity = output.count
        let count = input.count
        unsafe input.withUnsafeMutableBufferPointer { source in
            unsafe output.withUnsafeMutableBufferPointer { target in
                unsafe stream.next_in = source.baseAddress
                unsafe stream.avail_in = uInt(count)
                unsafe stream.next_out = target.baseAddress
                unsafe stream.avail_out = uInt(capacity)
                _ = unsafe deflate(&stream, Z_FINISH)
            }
        }
        let unused = unsafe Int(stream.avail_out)
        return Array(output.dropLast(unused))
    }

    /// Returns compressible text of a given length.
    static func sample(_ count: Int) -> [UInt8] {
        var state: UInt32 = 12_345
        return (0..<count).map { index in
            state = state &* 1_664_525 &+ 1_013_904_223
            return index % 3 == 0 ? UInt8(state >> 28) + 0x61 : UInt8(ascii: "x")
        }
    }
}
