import MartletContent
import MartletCore

/// The decoded bytes of a coded body that is fed in pieces.
struct CodedBody: Equatable {
    var bytes: [UInt8] = []
    var error: ContentDecodingError?

    /// Feeds pieces of a given size and then the end in a separate call, with a limit on the output of each call.
    init(
        _ wire: [UInt8], _ codings: [ContentCoding], size: Int = .max, room: Int = 64 * 1024,
        limits: DecompressionLimits = DecompressionLimits()
    ) {
        let decoder = ContentDecoder(codings: codings, limits: limits)
        var fed = 0
        do throws(ContentDecodingError) {
            while true {
                let end = fed + min(size, wire.count - fed)
                var rest = wire[fed..<end]
                let isLast = fed == wire.count
                while true {
                    let piece = try decoder.decode(rest, endOfInput: isLast, upTo: room)
                    bytes += piece.bytes
                    rest = rest.dropFirst(piece.consumed)
                    if piece.isFinished { return }
                    if piece.consumed == 0, piece.bytes.isEmpty { break }
                }
                fed = end
            }
        } catch {
            self.error = error
        }
    }

    /// Returns the bytes of a string of hexadecimal digits.
    static func wire(_ digits: String) -> [UInt8] {
        let values = digits.utf8.map { $0 < 0x3A ? $0 - 0x30 : $0 - 0x57 }
        return stride(from: 0, to: values.count - 1, by: 2).map { values[$0] << 4 | values[$0 + 1] }
    }
}
