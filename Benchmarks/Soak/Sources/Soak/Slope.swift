/// The regression line of samples.
struct Slope {
    /// The increase of y per unit of x.
    let rise: Double

    /// Fits a line by least squares; it is level with fewer than two samples.
    init(_ samples: some Collection<(x: Double, y: Double)>) {
        let count = Double(max(1, samples.count))
        let meanX = samples.reduce(0) { $0 + $1.x } / count
        let meanY = samples.reduce(0) { $0 + $1.y } / count
        let above = samples.reduce(0) { $0 + ($1.x - meanX) * ($1.y - meanY) }
        let below = samples.reduce(0) { $0 + ($1.x - meanX) * ($1.x - meanX) }
        rise = below == 0 ? 0 : above / below
    }
}
