import MartletWire

/// An input in two parts: a line of controls, which configures the run, and after its LF the payload.
///
/// Controls are the bytes of the line by position; a missing one counts as 0. Digits and letters are sufficient for all
/// of them, so seeds can be written in any editor. An input without LF is all payload.
/// them, so seeds can be written in any editor. An input without LF is all payload.
struct FuzzInput: Sendable {
    /// The bytes before the first LF.
    let controls: [UInt8]
    /// The bytes after the first LF.
    let payload: [UInt8]

    /// Splits an input into controls and payload.
    init(_ bytes: [UInt8]) {
        guard let end = bytes.firstIndex(of: ByteClass.lineFeed) else {
            controls = []
            payload = bytes
            return
        }
        controls = Array(bytes[..<end])
        payload = Array(bytes[(end + 1)...])
    }

    /// The control at a position.
    subscript(place: Int) -> UInt8 { controls.indices.contains(place) ? controls[place] : 0 }

    /// Returns whether a bit of the control at a position is set. For digits, bits 0 to 3 are those of their value.
    func isSet(_ bit: Int, at place: Int) -> Bool { self[place] >> UInt8(bit) & 1 != 0 }

    /// Returns piece sizes from the controls at a position and after it: the value of a digit, the number of another
    /// byte, and at least 1 each. Without controls there is one size of 1.
    func pieceSizes(from place: Int) -> [Int] {
        let sizes = controls.dropFirst(place).map { byte in
            max(1, ByteClass.digit(byte) ?? Int(byte))
        }
        return sizes.isEmpty ? [1] : sizes
    }

    /// Returns the ways to feed the payload, which must all have the same result: in one step, byte by byte, and in
    /// pieces of the sizes from ``pieceSizes(from:)``.
    func arrivals(from place: Int) -> [Arrivals] {
        let count = payload.count
        return [
            .whole(count), Arrivals(of: count, sizes: [1]),
            Arrivals(of: count, sizes: pieceSizes(from: place)),
        ]
    }
}
