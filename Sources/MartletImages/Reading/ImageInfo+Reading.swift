extension ImageInfo {
    /// What a file, or the beginning of one, says about its image.
    ///
    /// - Throws: An ``ImageError`` with the place of what is wrong.
    public init(
        _ bytes: some Collection<UInt8>, limits: ImageLimits = .default
    ) throws(ImageError) {
        var reader = ImageInfoReader(limits: limits)
        try reader.feed(bytes)
        self = try reader.finish()
    }
}
