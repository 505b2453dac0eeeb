/// What the head of an image's file says about it.
public struct ImageInfo: Hashable, Sendable {
    /// The format, told by the bytes alone.
    public var format: ImageFormat
    /// The size as it is stored, before it is turned. Of a GIF it is that of the logical screen, of an animated image that
    /// of its canvas.
    public var size: ImageSize
    /// How it has to be turned. Exif data that makes no sense, or that is longer than 64 KiB, is passed over: `.up`.
    public var orientation: ImageOrientation
    /// How many frames there are; nil as long as it is not known. A JPEG has one; of a PNG the animation's head says how
    /// many; of a GIF and a WebP it is known at the end.
    public var frameCount: Int?
    /// Whether there are several frames, or, of a WebP, its head says so; nil as long as it is not known.
    public var isAnimated: Bool?

    /// What is known of an image.
    public init(
        format: ImageFormat, size: ImageSize, orientation: ImageOrientation = .up, frameCount: Int? = nil,
        isAnimated: Bool? = nil
    ) {
        self.format = format
        self.size = size
        self.orientation = orientation
        self.frameCount = frameCount
        self.isAnimated = isAnimated
    }

    /// The size as it is seen, once it is turned.
    public var displaySize: ImageSize { orientation.swapsSides ? size.turned : size }
}
