/// Random numbers that are the same for the same seed, in every run and on every machine (SplitMix64).
///
/// For tests and faults that are to be repeated; not for anything secret.
public struct SeededGenerator: RandomNumberGenerator, Hashable, Sendable {
    private var state: UInt64

    /// A generator; every seed is as good as any other.
    public init(seed: UInt64) {
        state = seed
    }

    /// One of many generators with a common seed, whose numbers have nothing to do with each other's.
    public init(seed: UInt64, stream: UInt64) {
        // Seeds that follow each other give the same numbers, moved by one: the stream's number is mixed first.
        var mixer = SeededGenerator(seed: ~stream)
        state = seed ^ mixer.next()
    }

    /// The next number; all 64 bits are fit for use.
    public mutating func next() -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        var mixed = state
        mixed = (mixed ^ (mixed >> 30)) &* 0xBF58_476D_1CE4_E5B9
        mixed = (mixed ^ (mixed >> 27)) &* 0x94D0_49BB_1331_11EB
        return mixed ^ (mixed >> 31)
    }
}
