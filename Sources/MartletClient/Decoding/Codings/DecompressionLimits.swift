/// How far a compressed body may expand before it counts as an attack.
///
/// A decompression bomb turns kilobytes on the wire into gigabytes in memory or on disk. These limits hold
/// for what is decoded; bodies without a content coding are not touched by them.
public struct DecompressionLimits: Hashable, Sendable, Codable {
    /// The most bytes a body may have once decoded; default nil, no limit of its own.
    ///
    /// Values below 0 count as 0. It stops bombs whose ratio is modest but whose size is not.
    public var maximumByteCount: Int?

    /// How many bytes may come out for each byte that went in; default 100.
    ///
    /// Holds only for output above ``ratioThreshold``, and for each coding of a nested body by itself,
    /// against the bytes received. Deflate cannot exceed about 1,030 in one layer, so larger values turn the
    /// limit off for it; Brotli and Zstandard have no such bound. Values below 1 count as 1.
    public var maximumRatio: Int

    /// Bytes of output below which the ratio does not matter; default 10 MiB.
    ///
    /// Small bodies of zeros or blanks are legitimate and harmless. Values below 0 count as 0.
    public var ratioThreshold: Int

    /// How many codings `Content-Encoding` may list, `identity` included; default 5, as in curl.
    ///
    /// It stops bombs inside bombs, each layer multiplying the work.
    public var maximumCodings: Int

    /// Limits; every one has its default.
    public init(
        maximumByteCount: Int? = nil, maximumRatio: Int = 100, ratioThreshold: Int = 10 << 20,
        maximumCodings: Int = 5
    ) {
        self.maximumByteCount = maximumByteCount
        self.maximumRatio = maximumRatio
        self.ratioThreshold = ratioThreshold
        self.maximumCodings = maximumCodings
    }

    /// Whether so much output for so much input is a bomb.
    func isExceeded(output: Int, input: Int) -> Bool {
        guard output > max(ratioThreshold, 0) else { return false }
        let (allowed, overflow) = input.multipliedReportingOverflow(by: max(maximumRatio, 1))
        return !overflow && output > allowed
    }
}
