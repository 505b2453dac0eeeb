/// What is known so far of a file.
struct ImageFacts: Sendable {
    /// The size; nil until it was read.
    var size: ImageSize?
    /// The orientation; nil until Exif data said it.
    var orientation: ImageOrientation?
    /// The number of frames, once it is known.
    var frameCount: Int?
    /// Whether it is animated, once it is known.
    var isAnimated: Bool?
    /// Whether the pixels begin here, so that nothing more of the head follows.
    var hasHead = false
}
