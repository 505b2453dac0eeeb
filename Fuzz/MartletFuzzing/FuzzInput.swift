import MartletWire

/// An input in two parts: a line of controls, which says how to run, and behind its LF the payload, which is
/// what runs.
///
/// Controls are bytes by their place in the line; a missing one counts as 0. Digits and letters do for all of
/// them, so seeds can be written in any editor. An input without LF is all payload.
struct FuzzInput: Sendable {
    /// The bytes before the first LF.
    let controls: [UInt8]
    /// The bytes behind it.
    let payload: [UInt8]

    /// Takes an input apart.
    init(_ bytes: [UInt8]) {
        guard let end = bytes.firstIndex(of: ByteClass.lineFeed) else {
            controls = []
            payload = bytes
            return
        }
        controls = Array(bytes[..<end])
        payload = Array(bytes[(end + 1)...])
    }

    /// The control at a place.
    subscript(place: Int) -> UInt8 { controls.indices.contains(place) ? controls[place] : 0 }

    /// Whether a bit of the control at a place is set; for digits, bits 0 to 3 are those of their value.
    func isSet(_ bit: Int, at place: Int) -> Bool { self[place] >> UInt8(bit) & 1 != 0 }

    /// Sizes of pieces: the controls from a place on, digits by their value and other bytes by their number,
    /// at least 1 each; one of 1 when there are none.
    func pieceSizes(from place: Int) -> [Int] {
        let sizes = controls.dropFirst(place).map { byte in
            max(1, ByteClass.digit(byte) ?? Int(byte))
        }
        return sizes.isEmpty ? [1] : sizes
    }

    /// The ways to feed the payload that must all come to the same: at once, byte by byte, and in pieces of
    /// the sizes that the controls from a place on name in turn.
    func arrivals(from place: Int) -> [Arrivals] {
        let count = payload.count
        return [
            .whole(count), Arrivals(of: count, sizes: [1]),
            Arrivals(of: count, sizes: pieceSizes(from: place)),
        ]
    }
}
