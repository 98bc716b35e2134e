package demo_test

import (
	"fmt"

	"github.com/otograph/otograph/models"
	"github.com/otograph/otograph/models/demo"
)

func ExampleModels() {
	set := demo.Models()
	recognizer, _ := set.Role(models.RoleStandard)
	fmt.Println(recognizer.Languages)
	// Output: [en es fr pt de zh]
}
