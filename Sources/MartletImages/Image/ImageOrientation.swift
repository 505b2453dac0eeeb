/// How an image has to be turned to be seen as it was taken: the numbers of Exif's tag `Orientation` (0x0112).
public enum ImageOrientation: UInt8, Hashable, Sendable, CaseIterable {
    /// As it is stored.
    case up = 1
    /// Mirrored left to right.
    case upMirrored = 2
    /// Turned by 180°.
    case down = 3
    /// Mirrored top to bottom.
    case downMirrored = 4
    /// Mirrored along the diagonal from the upper left: rows become columns.
    case leftMirrored = 5
    /// To be turned by 90° clockwise.
    case right = 6
    /// Mirrored along the diagonal from the upper right.
    case rightMirrored = 7
    /// To be turned by 90° counter-clockwise.
    case left = 8

    /// Whether width and height change places.
    public var swapsSides: Bool { rawValue >= 5 }
}
