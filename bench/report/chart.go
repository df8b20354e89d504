package report

import (
	"bytes"
	"encoding/xml"
	"image/color"

	fontstyle "golang.org/x/image/font"
	"gonum.org/v1/plot"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgsvg"
)

// chartFolder is beside the page.
const chartFolder = "benchmarks"

// Sizes in points: 600 by 360 pixels in a browser.
const (
	chartWidth  = 450 * vg.Length(1)
	chartHeight = 270 * vg.Length(1)
	chartMargin = 10 * vg.Length(1)
)

// chart is one picture. Its title, what its lines have in common, and its legend are
// above the plot, where they cover nothing.
type chart struct {
	name     string // of the file, without the ending
	title    string
	subtitle string
	height   vg.Length
	plot     *plot.Plot
	legend   []entry // none: nothing to tell apart
}

type entry struct {
	label  string
	thumbs []plot.Thumbnailer
}

func (c chart) file() string { return c.name + ".svg" }

// alt is the text for whoever can't see the chart.
func (c chart) alt() string {
	if c.subtitle == "" {
		return c.title
	}
	return c.title + ": " + c.subtitle
}

// newPlot has readable text, light lines, and no frame.
func newPlot(x, y string) *plot.Plot {
	p := plot.New()
	p.X.Label.Text, p.Y.Label.Text = x, y
	for _, axis := range []*plot.Axis{&p.X, &p.Y} {
		axis.Color, axis.Tick.Color = grey, grey
		axis.Label.TextStyle.Font = sans(9)
		axis.Label.TextStyle.Color = ink
		axis.Label.Padding = 3
		axis.Tick.Label.Font = sans(8.5)
		axis.Tick.Label.Color = ink
		axis.Tick.Length = 3
		axis.Padding = 2
	}
	p.Y.LineStyle.Width = 0 // the grid tells the height
	p.Y.Tick.LineStyle.Width = 0
	return p
}

var (
	ink       = color.RGBA{R: 0x22, G: 0x22, B: 0x22, A: 0xff}
	grey      = color.RGBA{R: 0x80, G: 0x80, B: 0x80, A: 0xff}
	lightGrey = color.RGBA{R: 0xe2, G: 0xe2, B: 0xe2, A: 0xff}
	barGrey   = color.RGBA{R: 0xa8, G: 0xa8, B: 0xa8, A: 0xff}
)

// palette returns the i-th colour of Okabe and Ito, which are told apart with any
// colour vision. Yellow is left out: it is too light for lines on white.
func palette(i int) color.Color {
	colours := []color.RGBA{
		{R: 0, G: 114, B: 178, A: 255},   // blue
		{R: 213, G: 94, B: 0, A: 255},    // vermilion
		{R: 0, G: 158, B: 115, A: 255},   // bluish green
		{R: 230, G: 159, B: 0, A: 255},   // orange
		{R: 204, G: 121, B: 167, A: 255}, // reddish purple
		{R: 86, G: 180, B: 233, A: 255},  // sky blue
		{R: 0, G: 0, B: 0, A: 255},
	}
	return colours[i%len(colours)]
}

// dashes returns the i-th way to draw a line; the first is solid.
func dashes(i int) []vg.Length {
	ways := [][]vg.Length{nil, {5, 2}, {1.5, 1.5}, {6, 2, 1.5, 2}}
	return ways[i%len(ways)]
}

func sans(size vg.Length) font.Font {
	return font.Font{Typeface: "Liberation", Variant: "Sans", Size: size}
}

func style(f font.Font, c color.Color) text.Style {
	return text.Style{Font: f, Color: c, Handler: plot.DefaultTextHandler}
}

// svg draws the chart.
func (c chart) svg() ([]byte, error) {
	canvas := vgsvg.NewWith(vgsvg.UseWH(chartWidth, c.height))
	all := draw.New(canvas)
	all.SetColor(color.White)
	all.Fill(all.Rectangle.Path())
	rest := c.drawHead(draw.Crop(all, chartMargin, -chartMargin, chartMargin, -chartMargin))
	c.plot.Draw(rest)
	var out bytes.Buffer
	if _, err := canvas.WriteTo(&out); err != nil {
		return nil, err
	}
	return finish(out.Bytes(), c.alt())
}

// drawHead returns what is left below the head.
func (c chart) drawHead(area draw.Canvas) draw.Canvas {
	line := func(s text.Style, content string) {
		area.Max.Y -= s.FontExtents().Ascent
		area.FillText(s, vg.Point{X: area.Min.X, Y: area.Max.Y}, content)
		area.Max.Y -= s.FontExtents().Descent + 2
	}
	bold := sans(10.5)
	bold.Weight = fontstyle.WeightBold
	line(style(bold, ink), c.title)
	if c.subtitle != "" {
		line(style(sans(8.5), ink), c.subtitle)
	}
	area.Max.Y -= 4
	if len(c.legend) > 0 {
		area = c.drawLegend(area)
	}
	area.Max.Y -= 4
	return area
}

// drawLegend sets the entries one after the other, in as many lines as they need.
func (c chart) drawLegend(area draw.Canvas) draw.Canvas {
	const thumbWidth, gap, lineHeight = 20, 5, 13
	s := style(sans(9), ink)
	x := area.Min.X
	area.Max.Y -= lineHeight
	for _, e := range c.legend {
		width := thumbWidth + gap + s.Width(e.label)
		if x > area.Min.X && x+width > area.Max.X {
			x = area.Min.X
			area.Max.Y -= lineHeight
		}
		thumb := draw.Canvas{Canvas: area.Canvas, Rectangle: vg.Rectangle{
			Min: vg.Point{X: x, Y: area.Max.Y}, Max: vg.Point{X: x + thumbWidth, Y: area.Max.Y + lineHeight - 3}}}
		for _, t := range e.thumbs {
			t.Thumbnail(&thumb)
		}
		area.FillText(s, vg.Point{X: x + thumbWidth + gap, Y: area.Max.Y + 2}, e.label)
		x += width + 3*gap
	}
	return area
}

// finish gives the picture a title, and names fonts of the same widths for where
// the first is missing.
func finish(svg []byte, title string) ([]byte, error) {
	const family, end = "font-family:Liberation Sans", "xlink\">\n"
	svg = bytes.ReplaceAll(svg, []byte(family), []byte(family+", Arial, Helvetica, sans-serif"))
	var escaped bytes.Buffer
	if err := xml.EscapeText(&escaped, []byte(title)); err != nil {
		return nil, err
	}
	return bytes.Replace(svg, []byte(end), []byte(end+"<title>"+escaped.String()+"</title>\n"), 1), nil
}
